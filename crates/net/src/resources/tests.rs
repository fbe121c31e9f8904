use std::path::Path;
use std::process::Command;

use super::*;

const RAM: u64 = 10_000;

/// A folder that looks like the mount point of control groups.
struct GroupTree(tempfile::TempDir);

impl GroupTree {
    fn new(files: &[(&str, &str)]) -> GroupTree {
        let tree = GroupTree(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let file = tree.0.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        tree
    }

    fn limit(&self, lines: &str) -> MemoryLimit {
        MemoryLimit::from_groups(&ControlGroups::new(self.0.path(), lines), RAM)
    }

    fn quota(&self, lines: &str) -> Option<f64> {
        ControlGroups::new(self.0.path(), lines).cpu_quota()
    }
}

#[test]
fn the_least_limit_of_nested_groups_counts() {
    let files = [
        ("a/memory.max", "2000\n"),
        ("a/b/memory.max", "max\n"),
        ("a/c/memory.max", "1000\n"),
        ("unified/h/memory.max", "700\n"),
        ("memory/memory.limit_in_bytes", "500\n"),
    ];
    let tree = GroupTree::new(&files);
    assert_eq!(tree.limit("0::/a/b\n").bytes(), 2000);
    assert_eq!(tree.limit("0::/a/c\n").bytes(), 1000);
    assert_eq!(tree.limit("0::/elsewhere\n").bytes(), RAM);
    assert_eq!(tree.limit("0::/h\n").bytes(), 700, "both versions in use");
    assert_eq!(
        tree.limit("5:cpu:/x\n4:memory:/docker/1\n").bytes(),
        500,
        "a container sees the path of its host"
    );
}

/// Version 1 of control groups reports a number near 2^63 if a group has no limit.
#[test]
fn a_limit_above_the_ram_is_none() {
    let files = [("memory/memory.limit_in_bytes", "9223372036854771712\n")];
    let tree = GroupTree::new(&files);
    let limit = tree.limit("4:memory:/\n");
    assert_eq!(limit.bytes(), RAM);
    assert!(limit.groups.is_empty());
}

#[test]
fn pages_of_files_are_not_in_use() {
    let files = [
        ("a/memory.max", "1000\n"),
        ("a/memory.current", "900\n"),
        (
            "a/memory.stat",
            "anon 100\ninactive_file 300\nactive_file 200\n",
        ),
        ("memory/b/memory.limit_in_bytes", "1000\n"),
        ("memory/b/memory.usage_in_bytes", "900\n"),
        (
            "memory/b/memory.stat",
            "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 300\n",
        ),
    ];
    let tree = GroupTree::new(&files);
    assert_eq!(tree.limit("0::/a\n").used_bytes(), Some(400));
    assert_eq!(tree.limit("4:memory:/b\n").used_bytes(), Some(100));
}

#[test]
fn reclaimable_slab_memory_is_not_in_use() {
    let stat = "anon 100\nslab_reclaimable 300\nslab_unreclaimable 90\nslab 390\n";
    let files = [
        ("a/memory.max", "1000\n"),
        ("a/memory.current", "900\n"),
        ("a/memory.stat", stat),
    ];
    let tree = GroupTree::new(&files);
    assert_eq!(tree.limit("0::/a\n").used_bytes(), Some(600));
}

/// A parent group may have used a larger share of its limit than the group with the lowest limit.
#[test]
fn the_fullest_of_nested_groups_counts() {
    let files = [
        ("a/memory.max", "2000\n"),
        ("a/memory.current", "1900\n"),
        ("a/memory.stat", ""),
        ("a/b/memory.max", "1000\n"),
        ("a/b/memory.current", "100\n"),
        ("a/b/memory.stat", ""),
    ];
    let tree = GroupTree::new(&files);
    let limit = tree.limit("0::/a/b\n");
    assert_eq!((limit.bytes(), limit.used_bytes()), (1000, Some(950)));
}

#[test]
fn a_started_processor_of_the_quota_gets_a_worker() {
    let files = [
        ("a/cpu.max", "250000 100000\n"),
        ("a/b/cpu.max", "max 100000\n"),
        ("cpu/c/cpu.cfs_quota_us", "50000\n"),
        ("cpu/c/cpu.cfs_period_us", "100000\n"),
        ("cpu/cpu.cfs_quota_us", "-1\n"),
        ("cpu/cpu.cfs_period_us", "100000\n"),
    ];
    let tree = GroupTree::new(&files);
    assert_eq!(tree.quota("0::/a/b\n"), Some(2.5));
    assert_eq!(tree.quota("2:cpu,cpuacct:/c\n"), Some(0.5));
    assert_eq!(tree.quota("1:cpu:/\n"), None);
    assert_eq!(limit_workers_by_quota(8, Some(2.5)), 3);
    assert_eq!(limit_workers_by_quota(8, Some(0.5)), 1);
    assert_eq!(limit_workers_by_quota(2, Some(7.0)), 2);
    assert_eq!(limit_workers_by_quota(2, None), 2);
}

#[test]
fn this_process_has_a_limit_and_uses_memory() {
    let used = MemoryLimit::from_configured_bytes(1).used_bytes().unwrap();
    assert!(used > 0);
    assert!(MemoryLimit::detect_memory_limit().bytes() > used);
    assert!(default_workers() >= 1);
}

/// Runs this test again in a child process, inside new groups of version 1 that have limits. The
/// test needs root rights and the mounted cgroup v1 hierarchies `memory` and `cpu`.
#[test]
fn a_live_group_of_version_1_limits_memory_and_workers() {
    const INSIDE: &str = "HEADWATER_TEST_INSIDE_GROUP";
    if std::env::var_os(INSIDE).is_some() {
        let limit = MemoryLimit::detect_memory_limit();
        assert_eq!(limit.bytes(), 64 << 20);
        let used = limit.used_bytes().unwrap();
        assert!((1..64 << 20).contains(&used), "{used}");
        assert_eq!(default_workers(), 1);
        return;
    }
    let Some(groups) = LiveGroups::create() else {
        eprintln!("SKIPPED control groups of version 1 cannot be created here");
        return;
    };
    let name = "resources::tests::a_live_group_of_version_1_limits_memory_and_workers";
    let mut inside = Command::new("sh");
    let enter = "for group; do echo $$ > $group/cgroup.procs || exit 9; done; \
                 exec \"$HEADWATER_TEST_PROGRAM\" --exact \"$HEADWATER_TEST_NAME\" --nocapture";
    inside.args(["-c", enter, "sh"]).args(&groups.0);
    inside.env(INSIDE, "1").env("HEADWATER_TEST_NAME", name);
    inside.env("HEADWATER_TEST_PROGRAM", std::env::current_exe().unwrap());
    let output = inside.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("1 passed"), "{text}");
}

struct LiveGroups(Vec<PathBuf>);

impl LiveGroups {
    fn create() -> Option<LiveGroups> {
        let mut groups = LiveGroups(Vec::new());
        let limits = [
            ("memory", "memory.limit_in_bytes", "67108864"),
            ("cpu", "cpu.cfs_quota_us", "50000"),
        ];
        for (controller, file, value) in limits {
            let name = format!("headwater-test-{}", std::process::id());
            let folder = Path::new("/sys/fs/cgroup").join(controller).join(name);
            // In a mounted hierarchy, the kernel creates the files of the new group. In an ordinary
            // folder, the files are missing.
            std::fs::create_dir(&folder).ok()?;
            groups.0.push(folder.clone());
            let created = folder.join(file).exists() && folder.join("cgroup.procs").exists();
            (created && std::fs::write(folder.join(file), value).is_ok()).then_some(())?;
        }
        Some(groups)
    }
}

impl Drop for LiveGroups {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
