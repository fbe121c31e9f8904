//! Tests that the cache returns only values that were stored, even if files are damaged.

use super::record::{CacheRecord, RecordError};
use super::*;
use proptest::prelude::*;

fn temporary_cache() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Sets the last use of a file to `seconds` ago.
fn set_last_use(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(seconds);
    file.set_modified(then).unwrap();
}

#[test]
fn a_value_survives_a_restart_and_is_replaced_by_a_new_version() {
    let dir = temporary_cache();
    let cache = DiskCache::open_disk_cache(dir.path(), 1 << 20).unwrap();
    assert_eq!(cache.get("film", b"1"), None);
    cache.put("film", b"1", b"index").unwrap();
    assert_eq!(cache.get("film", b"1").as_deref(), Some(&b"index"[..]));
    assert_eq!(cache.get("film", b"2"), None);
    assert_eq!(cache.get("other", b"1"), None);
    let cache = DiskCache::open_disk_cache(dir.path(), 1 << 20).unwrap();
    assert_eq!(cache.get("film", b"1").as_deref(), Some(&b"index"[..]));
    cache.put("film", b"2", b"new").unwrap();
    assert_eq!(cache.get("film", b"1"), None);
    assert_eq!(cache.get("film", b"2").as_deref(), Some(&b"new"[..]));
    assert_eq!(list_files(dir.path()).len(), 1, "each name has one file");
    let len = fs::metadata(&list_files(dir.path())[0]).unwrap().len();
    assert_eq!(cache.stored_bytes(), len);
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.broken), (2, 1, 0));
    cache.remove_value("film");
    assert_eq!((cache.get("film", b"2"), cache.stored_bytes()), (None, 0));
}

#[test]
fn every_truncation_and_flipped_bit_is_detected() {
    let dir = temporary_cache();
    let cache = DiskCache::open_disk_cache(dir.path(), 1 << 20).unwrap();
    cache
        .put("film", b"version", b"the index of a film")
        .unwrap();
    let path = list_files(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut broken = 0;
    let mut refuse = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get("film", b"version"), None);
        broken += 1;
        assert_eq!(cache.counts().broken, broken);
        assert!(!path.exists(), "a damaged file is removed");
    };
    for end in 0..whole.len() {
        refuse(&whole[..end]);
    }
    for bit in 0..whole.len() * 8 {
        let mut other = whole.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        refuse(&other);
    }
    refuse(&[&whole[..], b"\0"].concat());
    refuse(&vec![0; whole.len()]);
    fs::write(&path, &whole).unwrap();
    assert!(cache.get("film", b"version").is_some());
}

#[test]
fn the_folder_is_bounded_and_evicts_the_least_recently_used_first() {
    let dir = temporary_cache();
    let cache = DiskCache::open_disk_cache(dir.path(), 10_000).unwrap();
    for n in 0..8 {
        cache.put(&format!("film{n}"), b"1", &[7; 1000]).unwrap();
        set_last_use(&cache.path_of(&format!("film{n}")), 1000 - n);
    }
    // Reading `film0` makes it the most recently used value.
    assert!(cache.get("film0", b"1").is_some());
    for n in 8..12 {
        cache.put(&format!("film{n}"), b"1", &[7; 1000]).unwrap();
    }
    assert!(cache.stored_bytes() <= 10_000, "{}", cache.stored_bytes());
    let sum: u64 = list_files(dir.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(sum, cache.stored_bytes());
    assert!(cache.get("film0", b"1").is_some());
    assert!(cache.get("film11", b"1").is_some());
    assert!(cache.get("film1", b"1").is_none());
    cache.put("huge", b"1", &[7; 20_000]).unwrap();
    assert!(cache.get("huge", b"1").is_none());
    assert!(cache.get("film11", b"1").is_some());
    // If the cache is opened with a smaller limit, it removes values immediately.
    let cache = DiskCache::open_disk_cache(dir.path(), 3_000).unwrap();
    assert!(cache.stored_bytes() <= 3_000);
    assert!(list_files(dir.path()).len() <= 2);
}

#[test]
fn abandoned_partial_files_are_removed_and_foreign_files_stay() {
    let dir = temporary_cache();
    let (old, young) = (dir.path().join("a.1-0.part"), dir.path().join("b.1-0.part"));
    let readme = dir.path().join("README");
    for path in [&old, &young, &readme] {
        fs::write(path, "half").unwrap();
    }
    set_last_use(&old, 3600);
    DiskCache::open_disk_cache(dir.path(), 0).unwrap();
    assert_eq!(
        [old.exists(), young.exists(), readme.exists()],
        [false, true, true]
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let dir = temporary_cache();
    let cache = DiskCache::open_disk_cache(&dir.path().join("deep/er"), 1 << 20).unwrap();
    cache.put("film", b"1", b"index").unwrap();
    fs::remove_dir_all(dir.path().join("deep")).unwrap();
    assert!(cache.put("film", b"1", b"index").is_err());
    assert_eq!(cache.get("film", b"1"), None);
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(DiskCache::open_disk_cache(&dir.path().join("file"), 1).is_err());
}

#[test]
fn many_threads_and_processes_share_a_folder() {
    let dir = temporary_cache();
    let open = || DiskCache::open_disk_cache(dir.path(), 5_000).unwrap();
    let (a, b) = (open(), open());
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let cache = if thread % 2 == 0 { &a } else { &b };
            scope.spawn(move || {
                for n in 0..200u32 {
                    let name = format!("film{}", n % 7);
                    let value = [n as u8 % 7; 900];
                    cache.put(&name, b"1", &value).unwrap();
                    if let Some(found) = cache.get(&name, b"1") {
                        assert_eq!(found, value);
                    }
                }
            });
        }
    });
    assert_eq!((a.counts().broken, b.counts().broken), (0, 0));
    drop(open());
    let sum: u64 = list_files(dir.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(sum <= 5_000, "{sum}");
}

proptest! {
    #[test]
    fn a_record_is_read_back(name in ".{0,40}", version: Vec<u8>, value: Vec<u8>, other: Vec<u8>) {
        let record = CacheRecord { name: &name, version: &version, value: &value };
        let bytes = record.encode();
        prop_assert_eq!(CacheRecord::decode_value(&bytes, &name, &version), Ok(&value[..]));
        if other != version {
            prop_assert_eq!(CacheRecord::decode_value(&bytes, &name, &other), Err(RecordError::Other));
        }
    }
}
