//! The default of `send-memory`: a share of the memory that this process may use.

use std::path::{Path, PathBuf};

const BYTES_MAX: u64 = 1 << 30;
/// Divisor of the memory limit.
const SHARE: u64 = 4;

/// Returns 25 % of the memory limit (that of the control group, else the machine's RAM), at most 1
/// GiB.
pub(crate) fn default_limit_bytes() -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit_bytes(Path::new("/sys/fs/cgroup"), &groups);
    let limit = group.unwrap_or(u64::MAX).min(ram_bytes());
    (limit / SHARE).min(BYTES_MAX)
}

fn ram_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// The least limit of the process's control group and of the groups above it, in both versions of
/// control groups. `groups` has the format of `/proc/self/cgroup`.
fn group_limit_bytes(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        // Inside a container the path may be that of the host; then only the root exists.
        let group = root.join(path.trim_start_matches('/'));
        let groups = group
            .ancestors()
            .take_while(|group| group.starts_with(&root));
        groups.filter_map(|group| limit_of(group.join(file))).min()
    });
    limits.min()
}

/// Returns `None` for `max` and for a missing file.
fn limit_of(file: PathBuf) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_nested_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let limit = |groups: &str| group_limit_bytes(root.path(), groups);
        assert_eq!(limit("0::/a/b\n"), None);
        put("a/memory.max", "2000\n");
        put("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), Some(2000));
        put("a/b/memory.max", "1000\n");
        assert_eq!(limit("0::/a/b\n"), Some(1000));
        assert_eq!(limit("0::/elsewhere\n"), None);
        put("memory/memory.limit_in_bytes", "500");
        assert_eq!(limit("5:cpu:/x\n4:memory:/docker/1\n"), Some(500));
    }

    #[test]
    fn the_default_is_at_most_a_gibibyte() {
        assert!((1..=BYTES_MAX).contains(&default_limit_bytes()));
    }
}
