use std::path::Path;
use std::sync::{Arc, mpsc};

use net::config::{SettingLayers, SettingSources};
use net::metrics::Metrics;
use net::{FatalError, OverloadManager, Shutdown};
use store::{DiskTier, ObjectToStore, TierBodySource};

use super::deferred_tier::DeferredTier;
use super::{MemoryAndDiskTiers, open_memory_and_disk};
use crate::cache_key::CacheKey;
use crate::config::{EdgeSettings, SETTINGS, TABLES, define_edge_command};
use crate::purge::PurgeTarget;
use crate::serve::build_edge;

fn open_folder(folder: &Path, replaces: bool) -> Result<MemoryAndDiskTiers, FatalError> {
    open_memory_and_disk(&settings_with_disk(folder), &Metrics::new(), replaces)
}

fn settings_with_disk(folder: &Path) -> EdgeSettings {
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
    EdgeSettings::from_layers(&SettingLayers::new(&sources).unwrap()).unwrap()
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

/// Writes empty entries with these keys to a folder.
fn write_entries<const COUNT: usize>(folder: &Path, keys: [&str; COUNT]) {
    let (tier, _) = open_and_hold_scan(folder);
    tier.close(keys.map(|key| ObjectToStore {
        key: key.to_owned(),
        tags: String::new(),
        head: Vec::new(),
        body: TierBodySource::Memory(Vec::new()),
    }));
}

/// Regression: 513 such requests removed all entries.
#[test]
fn many_unsafe_requests_while_the_tier_reads_its_folder_remove_only_their_own_urls() {
    let folder = tempfile::tempdir().unwrap();
    let scanned = folder.path().join("scanned");
    let keys = ["/0", "/0\n@pool:x\norigin:y", "/a", "/b"];
    write_entries(&scanned, keys);
    let settings = settings_with_disk(&folder.path().join("other"));
    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let overload = OverloadManager::default();
    let mut edge = build_edge(settings, 1, &metrics, &shutdown, overload, false).unwrap();
    let (tier, hold) = open_and_hold_scan(&scanned);
    let (_memory, disk) = open_folder(&folder.path().join("third"), false).unwrap();
    let mut disk = Arc::into_inner(disk).unwrap();
    disk.tier = DeferredTier::from_open_tier(tier.clone());
    edge.disk = Arc::new(disk);
    for n in 0..2000 {
        edge.invalidate_key(&CacheKey::from(format!("/{n}").as_str()));
    }
    edge.purge_objects(&PurgeTarget::Url("/b".to_owned()), false);
    drop(hold);
    tier.close([]);
    let found = keys.map(|key| edge.disk.has_entry(key));
    assert_eq!(found, [false, false, true, false]);
}

#[test]
fn an_entry_removed_while_the_tier_reads_its_folder_does_not_return() {
    let folder = tempfile::tempdir().unwrap();
    let scanned = folder.path().join("scanned");
    write_entries(&scanned, ["/a", "/b", "/c"]);
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
