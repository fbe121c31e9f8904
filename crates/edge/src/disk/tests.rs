use std::path::Path;

use net::FatalError;
use net::config::{SettingLayers, SettingSources};
use net::metrics::Metrics;

use super::{CacheTiers, open_tiers};
use crate::config::{EdgeSettings, SETTINGS, TABLES, define_edge_command};

fn open_folder(folder: &Path, replaces: bool) -> Result<CacheTiers, FatalError> {
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
    open_tiers(&settings, &Metrics::new(), replaces)
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
