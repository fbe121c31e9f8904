use std::path::Path;
use std::sync::{Arc, mpsc};

use net::FatalError;
use net::config::{SettingLayers, SettingSources};
use net::metrics::Metrics;
use store::{DiskTier, TierBodySource, NewTierObject};

use super::deferred_tier::DeferredTier;
use super::{MemoryAndDiskTiers, open_memory_and_disk};
use crate::config::{EdgeSettings, SETTINGS, TABLES, define_edge_command};

fn open_folder(folder: &Path, replaces: bool) -> Result<MemoryAndDiskTiers, FatalError> {
    let folder = folder.to_str().unwrap();
    let args = [
        "edge",
        "--origin",
        "http://127.0.0.1:1",
        "--disk-dir",
        folder,
    ];
    let flags = define_edge_command().try_get_matches_from(args).unwrap();
    let sources = SettingSources {
        settings: SETTINGS,
        tables: TABLES,
        flags: &flags,
        env: &|_| None,
        read: &|_| Ok(String::new()),
    };
    let settings = EdgeSettings::from_layers(&SettingLayers::new(&sources).unwrap()).unwrap();
    open_memory_and_disk(&settings, &Metrics::new(), replaces)
}

/// Mutation testing showed that no other test detects two faults. In the first fault, every error
/// postpones the opening of the tier. In the second fault, `is_unopened` returns a wrong result.
#[test]
fn only_a_folder_in_use_is_deferred_and_only_after_a_hand_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    for replaces in [false, true] {
        assert!(open_folder(&file, replaces).is_err(), "{replaces}");
    }
    let used = folder.path().join("disk");
    let (memory, first) = open_folder(&used, false).unwrap();
    assert!(first.describe_status().is_object() && !first.is_unopened());
    assert!(open_folder(&used, false).is_err());
    let (_memory, successor) = open_folder(&used, true).unwrap();
    assert!(successor.describe_status().is_null() && successor.is_unopened());
    assert!(!successor.try_open_tier());
    // The memory tier also holds a reference to the disk tier, so both must be dropped.
    drop((memory, first));
    while !successor.try_open_tier() {
        std::thread::yield_now();
    }
    assert!(successor.describe_status().is_object() && !successor.is_unopened());
}

/// Opens a tier whose scan waits at the first file until the sender is dropped.
fn open_and_hold_scan(folder: &Path) -> (DiskTier, mpsc::Sender<()>) {
    let (hold, held) = mpsc::channel();
    let outdated = move |_: &str| {
        // Ignores the error, which means that the sender was dropped.
        let _ = held.recv();
        false
    };
    let tier = DiskTier::open_and_remove_outdated(folder, 1 << 30, 1 << 20, outdated).unwrap();
    (tier, hold)
}

#[test]
fn an_entry_removed_while_the_tier_reads_its_folder_does_not_return() {
    let folder = tempfile::tempdir().unwrap();
    let scanned = folder.path().join("scanned");
    let to_object = |key: &str| NewTierObject {
        key: key.to_owned(),
        tags: String::new(),
        head: Vec::new(),
        body: TierBodySource::Memory(Vec::new()),
    };
    let (tier, _) = open_and_hold_scan(&scanned);
    tier.close(["/a", "/b", "/c"].map(to_object));
    drop(tier);
    let (tier, hold) = open_and_hold_scan(&scanned);
    let (_memory, disk) = open_folder(&folder.path().join("other"), false).unwrap();
    let mut disk = Arc::into_inner(disk).unwrap();
    disk.tier = DeferredTier::from_open_tier(tier.clone());
    let during_scan = (disk.may_have_entry("/a"), disk.has_entry("/a"));
    disk.remove_entry("/a");
    disk.purge_entries(|key, _| key == "/b");
    drop(hold);
    tier.close([]);
    // Checked only now, because a failed check would wait for the scan when it drops the cache.
    assert_eq!(during_scan, (true, false));
    let found = ["/a", "/b", "/c"].map(|key| disk.has_entry(key));
    assert_eq!(found, [false, false, true]);
    assert!(!disk.may_have_entry("/a") && disk.may_have_entry("/c"));
}
