//! Tests that the tier returns only objects that were stored, even if files are damaged or
//! processes are killed.

use std::sync::mpsc;

use bytes::Bytes;

use super::format::FIXED;
use super::*;
use crate::storage_meter::RequestReason;

const LOTS: u64 = 64 << 20;

fn open_tier(folder: &Path) -> DiskTier {
    open_limited(folder, LOTS).unwrap()
}

fn open_limited(folder: &Path, bytes_max: u64) -> io::Result<DiskTier> {
    DiskTier::open_and_remove_outdated(folder, bytes_max, LOTS, |_| false)
}

/// Opens a tier whose scan waits at the first file until the sender is dropped.
fn open_and_hold_scan(folder: &Path) -> (DiskTier, mpsc::Sender<()>) {
    let (hold, held) = mpsc::channel();
    let outdated = move |_: &str| {
        // Ignores the error, which means that the sender was dropped.
        let _ = held.recv();
        false
    };
    let tier = DiskTier::open_and_remove_outdated(folder, LOTS, LOTS, outdated).unwrap();
    (tier, hold)
}

/// Writes objects of 100 bytes with these keys.
fn write_objects(folder: &Path, keys: &[&str]) {
    let tier = open_tier(folder);
    tier.close(keys.iter().map(|key| make_object(key, 100)));
    assert_eq!(tier.counts().written, keys.len() as u64);
}

fn make_object(key: &str, len: usize) -> ObjectToStore {
    let byte = |n: usize| (n * 31 + key.len()) as u8;
    ObjectToStore {
        key: key.to_owned(),
        tags: format!("all t-{key}"),
        head: format!("head of {key}").into_bytes(),
        body: TierBodySource::Memory(vec![
            (0..len).map(byte).collect(),
            Bytes::from_static(b"end"),
        ]),
    }
}

fn read_body(object: &ObjectToStore) -> Vec<u8> {
    match &object.body {
        TierBodySource::Memory(pieces) => pieces.concat(),
        TierBodySource::File(file, range) => file
            .read(range.clone(), RequestReason::Plain)
            .unwrap()
            .to_vec(),
    }
}

fn is_stored(tier: &DiskTier, object: &ObjectToStore) -> bool {
    let Some(found) = tier.get(&object.key) else {
        return false;
    };
    assert_eq!(found.head, object.head);
    assert_eq!(found.body.start % 4096, 0);
    let read = found
        .file
        .read(found.body.clone(), RequestReason::Plain)
        .unwrap();
    assert!(read == read_body(object));
    true
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with(LOCK)).collect()
}

/// Waits until the tier has indexed `len` objects.
fn wait_until(tier: &DiskTier, len: usize) {
    wait_for_count("indexed", len, || tier.len());
}

fn wait_for_count(what: &str, expected: usize, count: impl Fn() -> usize) {
    for _ in 0..4000 {
        if count() == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} objects are {what} instead of {expected}", count());
}

#[test]
fn objects_survive_a_restart_and_a_rewrite_of_their_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let all = [
        make_object("/a", 0),
        make_object("/b", 5000),
        make_object("/c", 3 << 20),
    ];
    let tier = open_tier(dir.path());
    for each in &all {
        assert!(tier.put(make_object(&each.key, read_body(each).len() - 3)));
    }
    tier.close([]);
    assert!(!tier.put(make_object("/late", 1)), "closed");
    assert_eq!(tier.counts().written, 3);
    drop(tier);
    let tier = open_tier(dir.path());
    wait_until(&tier, 3);
    assert!(all.iter().all(|each| is_stored(&tier, each)));
    assert!(
        all.iter().all(|each| is_stored(&tier, each)),
        "checked already"
    );
    // Stores an object again from its own file. The tier reads this file while it writes the new
    // file.
    let found = tier.get("/c").unwrap();
    let copy = ObjectToStore {
        body: TierBodySource::File(found.file, found.body),
        ..make_object("/c", 0)
    };
    let expected = read_body(&copy);
    assert!(tier.put(copy));
    tier.close([]);
    let found = tier.get("/c").unwrap();
    assert!(found.file.read(found.body, RequestReason::Plain).unwrap() == expected);
    assert_eq!(list_files(dir.path()).len(), 3);
}

#[test]
fn a_folder_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = open_tier(dir.path());
    let second = open_limited(dir.path(), LOTS);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    first.close([]);
}

#[test]
fn damaged_files_are_noticed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open_tier(dir.path());
    let one = make_object("/a", 10_000);
    tier.put(make_object("/a", 10_000));
    tier.close([]);
    drop(tier);
    let path = list_files(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let header_len = FIXED + "/a".len() + "all t-/a".len() + "head of /a".len() + 8;
    let mut harms: Vec<Vec<u8>> = Vec::new();
    for end in [
        0,
        1,
        FIXED - 1,
        FIXED,
        header_len,
        4095,
        4096,
        whole.len() - 1,
    ] {
        harms.push(whole[..end].to_vec());
    }
    for at in (0..header_len).chain([4096, 9000, whole.len() - 1]) {
        let mut other = whole.clone();
        other[at] ^= 0x10;
        harms.push(other);
    }
    harms.push([&whole[..], b"\0"].concat());
    harms.push(vec![0; whole.len()]);
    for harm in harms {
        fs::write(&path, &harm).unwrap();
        let tier = open_tier(dir.path());
        // `close` waits until the writer has scanned the folder.
        tier.close([]);
        assert!(!is_stored(&tier, &one));
        assert_eq!(tier.counts().broken, 1);
        assert!(!path.exists() && tier.is_empty());
    }
    fs::write(&path, &whole).unwrap();
    let tier = open_tier(dir.path());
    wait_until(&tier, 1);
    assert!(is_stored(&tier, &one));
    // The file of one object has the name of another object's file.
    tier.close([]);
    drop(tier);
    fs::rename(&path, path.with_file_name(file_name(7))).unwrap();
    let tier = open_tier(dir.path());
    tier.close([]);
    assert!(tier.is_empty() && list_files(dir.path()).is_empty());
}

/// Regression test: a process without free file descriptors removed files that it could not open.
#[test]
fn an_unreadable_file_does_not_count_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open_tier(dir.path());
    let one = make_object("/a", 10_000);
    tier.put(make_object("/a", 10_000));
    tier.close([]);
    let path = list_files(dir.path()).remove(0);
    let aside = dir.path().join("aside");
    // The path is a symlink to itself. Opening the path fails, but not with the error for a missing
    // file.
    let hide = || {
        fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
    };
    let show = || fs::rename(&aside, &path).unwrap();
    hide();
    assert!(!is_stored(&tier, &one));
    show();
    assert!(is_stored(&tier, &one));
    drop(tier);
    hide();
    let tier = open_tier(dir.path());
    tier.close([]);
    assert_eq!((tier.len(), tier.counts().broken), (0, 0));
    drop(tier);
    show();
    let tier = open_tier(dir.path());
    wait_until(&tier, 1);
    assert!(is_stored(&tier, &one));
    tier.close([]);
}

#[test]
fn the_folder_is_bounded_and_partial_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("0.part"), b"half").unwrap();
    fs::write(dir.path().join("mine.txt"), b"not ours").unwrap();
    let tier = open_limited(dir.path(), 1 << 20).unwrap();
    for n in 0..100 {
        tier.put(make_object(&format!("/{n}"), 50_000));
    }
    tier.close([]);
    assert!(tier.stored_bytes() <= 1 << 20);
    let objects = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == SUFFIX);
    let kept: Vec<_> = list_files(dir.path()).into_iter().filter(objects).collect();
    assert_eq!(kept.len(), tier.len());
    assert!(kept.len() > 10);
    assert!(!dir.path().join("0.part").exists());
    assert!(dir.path().join("mine.txt").exists());
    drop(tier);
    // If the tier is opened with a smaller limit, it removes objects immediately.
    let tier = open_limited(dir.path(), 1 << 19).unwrap();
    tier.close([]);
    assert!(tier.stored_bytes() <= 1 << 19);
    let kept: Vec<_> = list_files(dir.path()).into_iter().filter(objects).collect();
    assert_eq!(kept.len(), tier.len());
}

#[test]
fn removing_and_purging_also_affect_queued_objects() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open_tier(dir.path());
    for key in ["/a", "/b", "/c", "/d"] {
        tier.put(make_object(key, 100_000));
    }
    tier.remove("/a");
    assert!(!tier.has("/a"));
    assert_eq!(tier.purge(|key, tags| key == "/b" || tags == "all t-/c"), 2);
    tier.close([]);
    assert_eq!((tier.len(), list_files(dir.path()).len()), (1, 1));
    assert!(is_stored(&tier, &make_object("/d", 100_000)));
    assert_eq!(tier.purge(|_, tags| tags.starts_with("all ")), 1);
    assert!(list_files(dir.path()).is_empty());
}

/// Regression: only bodies counted, so any number of redirects or errors could be queued.
#[test]
fn queued_objects_without_a_body_are_bounded() {
    let queue = WriteQueue::new(10_000);
    let taken = (0..100).filter(|n| queue.enqueue_object(make_object(&format!("/{n}"), 0)));
    assert!((5..20).contains(&taken.count()));
}

#[test]
fn the_queue_is_bounded_but_always_takes_one_object() {
    let queue = WriteQueue::new(10_000);
    assert!(queue.enqueue_object(make_object("/long", 50_000)));
    assert!(!queue.enqueue_object(make_object("/more", 0)));
    let job = queue.next_job().unwrap();
    assert!(queue.has("/long"), "until it is written");
    assert_eq!(queue.mark_purged(|object| object.key == "/long"), 1);
    assert!(job.is_purged() && !queue.has("/long"));
    queue.finish_job();
    assert!(
        queue.enqueue_object(make_object("/a", 4000))
            && queue.enqueue_object(make_object("/b", 4000))
    );
    assert!(!queue.enqueue_object(make_object("/c", 4000)));
    assert_eq!(queue.len(), 2);
    queue.append_and_close([make_object("/rest", 50_000)]);
    queue.append_and_close([make_object("/late", 0)]);
    assert!(!queue.enqueue_object(make_object("/d", 0)));
    let left = std::iter::from_fn(|| queue.next_job());
    let left: Vec<_> = left.map(|job| job.object.key.clone()).collect();
    assert_eq!(left, ["/a", "/b", "/rest"]);
}

#[test]
fn the_queue_has_a_key_until_its_last_object_is_written() {
    let queue = WriteQueue::new(10_000);
    assert!(queue.enqueue_object(make_object("/a", 1)));
    queue.mark_key_purged("/a");
    assert!(!queue.has("/a"));
    assert!(queue.enqueue_object(make_object("/a", 2)) && queue.has("/a"));
    assert!(queue.next_job().unwrap().is_purged());
    queue.finish_job();
    assert!(queue.has("/a"));
    assert!(!queue.next_job().unwrap().is_purged());
    assert!(queue.has("/a"));
    queue.finish_job();
    assert!(!queue.has("/a") && queue.len() == 0);
}

#[test]
fn objects_removed_while_the_folder_is_scanned_do_not_return() {
    let dir = tempfile::tempdir().unwrap();
    write_objects(dir.path(), &["/a", "/b", "/c", "/d", "/e"]);
    let (tier, hold) = open_and_hold_scan(dir.path());
    assert!(tier.is_scanning());
    tier.purge(|key, _| key == "/a");
    tier.purge(|_, tags| tags.ends_with("t-/b"));
    tier.remove("/c");
    // The old object of this key must not precede the new object.
    tier.remove("/d");
    assert!(tier.put(make_object("/d", 5)));
    drop(hold);
    tier.close([]);
    assert!(!tier.is_scanning());
    assert!(["/a", "/b", "/c"].iter().all(|key| !tier.has(key)));
    assert!(is_stored(&tier, &make_object("/d", 5)) && is_stored(&tier, &make_object("/e", 100)));
    assert_eq!(list_files(dir.path()).len(), 2);
    assert_eq!(tier.counts().broken, 4);
}

#[test]
fn a_group_removed_while_the_folder_is_scanned_does_not_return() {
    let dir = tempfile::tempdir().unwrap();
    write_objects(dir.path(), &["/a", "/a\nvariant", "/ab", "/b\n/a"]);
    let (tier, hold) = open_and_hold_scan(dir.path());
    assert!(tier.put(make_object("/a\nqueued", 5)));
    assert_eq!(tier.remove_group("/a"), 1, "the queued object");
    drop(hold);
    tier.close([]);
    let keys = ["/a", "/a\nvariant", "/a\nqueued", "/ab", "/b\n/a"];
    let found = keys.map(|key| tier.has(key));
    assert_eq!(found, [false, false, false, true, true]);
    assert_eq!(tier.remove_group("/b"), 1);
    assert!(!tier.has("/b\n/a") && tier.has("/ab"));
}

#[test]
fn objects_can_be_purged_while_the_tier_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    write_objects(dir.path(), &["/old"]);
    // The objects wait until the scan has finished.
    let (tier, hold) = open_and_hold_scan(dir.path());
    let rest = ["/a", "/b", "/c"].map(|key| make_object(key, 100));
    let closing = tier.clone();
    let closing = std::thread::spawn(move || closing.close(rest));
    wait_for_count("queued", 3, || tier.unwritten_count());
    assert_eq!(tier.purge(|_, tags| tags.ends_with("t-/a")), 1);
    tier.remove("/b");
    drop(hold);
    closing.join().unwrap();
    tier.close([make_object("/late", 100)]);
    let found = ["/a", "/b", "/c", "/late"].map(|key| tier.has(key));
    assert_eq!(found, [false, false, true, false]);
    assert_eq!(list_files(dir.path()).len(), 2);
}
