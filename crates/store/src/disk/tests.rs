//! Nothing but what was kept is given back, whatever becomes of the files.

use super::record::{Record, Unread};
use super::*;
use proptest::prelude::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// When a file was last used, some seconds ago.
fn age(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(seconds);
    file.set_modified(then).unwrap();
}

#[test]
fn a_value_survives_a_restart_and_leaves_with_its_version() {
    let dir = folder();
    let cache = DiskCache::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(cache.get("film", b"1"), None);
    cache.put("film", b"1", b"index").unwrap();
    assert_eq!(cache.get("film", b"1").as_deref(), Some(&b"index"[..]));
    assert_eq!(cache.get("film", b"2"), None);
    assert_eq!(cache.get("other", b"1"), None);
    let cache = DiskCache::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(cache.get("film", b"1").as_deref(), Some(&b"index"[..]));
    cache.put("film", b"2", b"new").unwrap();
    assert_eq!(cache.get("film", b"1"), None);
    assert_eq!(cache.get("film", b"2").as_deref(), Some(&b"new"[..]));
    assert_eq!(files(dir.path()).len(), 1, "one file a name");
    let len = fs::metadata(&files(dir.path())[0]).unwrap().len();
    assert_eq!(cache.bytes(), len);
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.broken), (2, 1, 0));
    cache.forget("film");
    assert_eq!((cache.get("film", b"2"), cache.bytes()), (None, 0));
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let dir = folder();
    let cache = DiskCache::open(dir.path(), 1 << 20).unwrap();
    cache
        .put("film", b"version", b"the index of a film")
        .unwrap();
    let path = files(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut broken = 0;
    let mut refuse = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get("film", b"version"), None);
        broken += 1;
        assert_eq!(cache.counts().broken, broken);
        assert!(!path.exists(), "what is broken is removed");
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
fn the_folder_is_bounded_and_the_unused_leave_first() {
    let dir = folder();
    let cache = DiskCache::open(dir.path(), 10_000).unwrap();
    for n in 0..8 {
        cache.put(&format!("film{n}"), b"1", &[7; 1000]).unwrap();
        age(&cache.path(&format!("film{n}")), 1000 - n);
    }
    // Used again: now the youngest.
    assert!(cache.get("film0", b"1").is_some());
    for n in 8..12 {
        cache.put(&format!("film{n}"), b"1", &[7; 1000]).unwrap();
    }
    assert!(cache.bytes() <= 10_000, "{}", cache.bytes());
    let sum: u64 = files(dir.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(sum, cache.bytes());
    assert!(cache.get("film0", b"1").is_some());
    assert!(cache.get("film11", b"1").is_some());
    assert!(cache.get("film1", b"1").is_none());
    cache.put("huge", b"1", &[7; 20_000]).unwrap();
    assert!(cache.get("huge", b"1").is_none());
    assert!(cache.get("film11", b"1").is_some());
    // A smaller bound at the next start holds at once.
    let cache = DiskCache::open(dir.path(), 3_000).unwrap();
    assert!(cache.bytes() <= 3_000);
    assert!(files(dir.path()).len() <= 2);
}

#[test]
fn what_others_left_is_cleaned_and_what_is_not_ours_stays() {
    let dir = folder();
    let (old, young) = (dir.path().join("a.1-0.part"), dir.path().join("b.1-0.part"));
    let readme = dir.path().join("README");
    for path in [&old, &young, &readme] {
        fs::write(path, "half").unwrap();
    }
    age(&old, 3600);
    DiskCache::open(dir.path(), 0).unwrap();
    assert_eq!(
        [old.exists(), young.exists(), readme.exists()],
        [false, true, true]
    );
}

#[test]
fn a_folder_that_cannot_be_written_says_so_and_loses_nothing() {
    let dir = folder();
    let cache = DiskCache::open(&dir.path().join("deep/er"), 1 << 20).unwrap();
    cache.put("film", b"1", b"index").unwrap();
    fs::remove_dir_all(dir.path().join("deep")).unwrap();
    assert!(cache.put("film", b"1", b"index").is_err());
    assert_eq!(cache.get("film", b"1"), None);
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(DiskCache::open(&dir.path().join("file"), 1).is_err());
}

#[test]
fn many_threads_and_processes_share_a_folder() {
    let dir = folder();
    let open = || DiskCache::open(dir.path(), 5_000).unwrap();
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
    let sum: u64 = files(dir.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(sum <= 5_000, "{sum}");
}

proptest! {
    #[test]
    fn a_record_is_read_back(name in ".{0,40}", version: Vec<u8>, value: Vec<u8>, other: Vec<u8>) {
        let record = Record { name: &name, version: &version, value: &value };
        let bytes = record.write();
        prop_assert_eq!(Record::read(&bytes, &name, &version), Ok(&value[..]));
        if other != version {
            prop_assert_eq!(Record::read(&bytes, &name, &other), Err(Unread::Other));
        }
    }
}
