//! What is given back is what was kept, whatever becomes of files and processes.

use bytes::Bytes;

use super::format::FIXED;
use super::*;
use crate::meter::Reason;

const LOTS: u64 = 64 << 20;

fn open(folder: &Path) -> DiskTier {
    DiskTier::open(folder, LOTS, LOTS).unwrap()
}

fn object(key: &str, len: usize) -> Shelving {
    let byte = |n: usize| (n * 31 + key.len()) as u8;
    Shelving {
        key: key.to_owned(),
        tags: format!("all t-{key}"),
        head: format!("head of {key}").into_bytes(),
        body: ShelvedBody::Memory(vec![
            (0..len).map(byte).collect(),
            Bytes::from_static(b"end"),
        ]),
    }
}

fn body(object: &Shelving) -> Vec<u8> {
    match &object.body {
        ShelvedBody::Memory(pieces) => pieces.concat(),
        ShelvedBody::File(file, range) => file.read(range.clone(), Reason::Plain).unwrap().to_vec(),
    }
}

fn is_kept(tier: &DiskTier, object: &Shelving) -> bool {
    let Some(found) = tier.get(&object.key) else {
        return false;
    };
    assert_eq!(found.head, object.head);
    assert_eq!(found.body.start % 4096, 0);
    let read = found.file.read(found.body.clone(), Reason::Plain).unwrap();
    assert!(read == body(object));
    true
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with(LOCK)).collect()
}

/// Waits until the folder has been read.
fn until(tier: &DiskTier, len: usize) {
    for _ in 0..4000 {
        if tier.len() == len {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} are known, and not {len}", tier.len());
}

#[test]
fn objects_survive_a_restart_and_a_file_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let all = [object("/a", 0), object("/b", 5000), object("/c", 3 << 20)];
    let tier = open(dir.path());
    for each in &all {
        assert!(tier.put(object(&each.key, body(each).len() - 3)));
    }
    tier.close([]);
    assert!(!tier.put(object("/late", 1)), "closed");
    assert_eq!(tier.counts().written, 3);
    drop(tier);
    let tier = open(dir.path());
    until(&tier, 3);
    assert!(all.iter().all(|each| is_kept(&tier, each)));
    assert!(
        all.iter().all(|each| is_kept(&tier, each)),
        "checked already"
    );
    // From its own file, which is replaced while it is read.
    let found = tier.get("/c").unwrap();
    let copy = Shelving {
        body: ShelvedBody::File(found.file, found.body),
        ..object("/c", 0)
    };
    let expected = body(&copy);
    assert!(tier.put(copy));
    tier.close([]);
    let found = tier.get("/c").unwrap();
    assert!(found.file.read(found.body, Reason::Plain).unwrap() == expected);
    assert_eq!(files(dir.path()).len(), 3);
}

#[test]
fn a_folder_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let second = DiskTier::open(dir.path(), LOTS, LOTS);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    first.close([]);
}

#[test]
fn damaged_files_are_noticed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open(dir.path());
    let one = object("/a", 10_000);
    tier.put(object("/a", 10_000));
    tier.close([]);
    drop(tier);
    let path = files(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let said = FIXED + "/a".len() + "all t-/a".len() + "head of /a".len() + 8;
    let mut harms: Vec<Vec<u8>> = Vec::new();
    for end in [0, 1, FIXED - 1, FIXED, said, 4095, 4096, whole.len() - 1] {
        harms.push(whole[..end].to_vec());
    }
    for at in (0..said).chain([4096, 9000, whole.len() - 1]) {
        let mut other = whole.clone();
        other[at] ^= 0x10;
        harms.push(other);
    }
    harms.push([&whole[..], b"\0"].concat());
    harms.push(vec![0; whole.len()]);
    for harm in harms {
        fs::write(&path, &harm).unwrap();
        let tier = open(dir.path());
        // The writer reads the folder first.
        tier.close([]);
        assert!(!is_kept(&tier, &one));
        assert_eq!(tier.counts().broken, 1);
        assert!(!path.exists() && tier.is_empty());
    }
    fs::write(&path, &whole).unwrap();
    let tier = open(dir.path());
    until(&tier, 1);
    assert!(is_kept(&tier, &one));
    // Another object's file under this name.
    tier.close([]);
    drop(tier);
    fs::rename(&path, path.with_file_name(file_name(7))).unwrap();
    let tier = open(dir.path());
    tier.close([]);
    assert!(tier.is_empty() && files(dir.path()).is_empty());
}

/// A process that had run out of descriptors removed what it could not open.
#[test]
fn a_file_that_cannot_be_looked_at_is_no_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open(dir.path());
    let one = object("/a", 10_000);
    tier.put(object("/a", 10_000));
    tier.close([]);
    let path = files(dir.path()).remove(0);
    let aside = dir.path().join("aside");
    // Opening it fails, other than where it is not there.
    let hide = || {
        fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
    };
    let show = || fs::rename(&aside, &path).unwrap();
    hide();
    assert!(!is_kept(&tier, &one));
    show();
    assert!(is_kept(&tier, &one));
    drop(tier);
    hide();
    let tier = open(dir.path());
    tier.close([]);
    assert_eq!((tier.len(), tier.counts().broken), (0, 0));
    drop(tier);
    show();
    let tier = open(dir.path());
    until(&tier, 1);
    assert!(is_kept(&tier, &one));
    tier.close([]);
}

#[test]
fn the_folder_is_bounded_and_leftovers_go() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("0.part"), b"half").unwrap();
    fs::write(dir.path().join("mine.txt"), b"not ours").unwrap();
    let tier = DiskTier::open(dir.path(), 1 << 20, LOTS).unwrap();
    for n in 0..100 {
        tier.put(object(&format!("/{n}"), 50_000));
    }
    tier.close([]);
    assert!(tier.bytes() <= 1 << 20);
    let objects = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == SUFFIX);
    let kept: Vec<_> = files(dir.path()).into_iter().filter(objects).collect();
    assert_eq!(kept.len(), tier.len());
    assert!(kept.len() > 10);
    assert!(!dir.path().join("0.part").exists());
    assert!(dir.path().join("mine.txt").exists());
    drop(tier);
    // A smaller bound is kept from the start.
    let tier = DiskTier::open(dir.path(), 1 << 19, LOTS).unwrap();
    tier.close([]);
    assert!(tier.bytes() <= 1 << 19);
    let kept: Vec<_> = files(dir.path()).into_iter().filter(objects).collect();
    assert_eq!(kept.len(), tier.len());
}

#[test]
fn what_is_removed_or_purged_is_gone_also_while_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    let tier = open(dir.path());
    for key in ["/a", "/b", "/c", "/d"] {
        tier.put(object(key, 100_000));
    }
    tier.remove("/a");
    assert!(!tier.has("/a"));
    assert_eq!(tier.purge(|key, tags| key == "/b" || tags == "all t-/c"), 2);
    tier.close([]);
    assert_eq!((tier.len(), files(dir.path()).len()), (1, 1));
    assert!(is_kept(&tier, &object("/d", 100_000)));
    assert_eq!(tier.purge(|_, tags| tags.starts_with("all ")), 1);
    assert!(files(dir.path()).is_empty());
}

#[test]
fn what_waits_is_bounded_but_for_one() {
    let queue = Queue::new(1000);
    assert!(queue.push(object("/long", 5000)));
    assert!(!queue.push(object("/more", 0)));
    let job = queue.next().unwrap();
    assert!(queue.has("/long"), "until it is written");
    assert_eq!(queue.doom(|object| object.key == "/long"), 1);
    assert!(job.is_doomed() && !queue.has("/long"));
    queue.done();
    assert!(queue.push(object("/a", 400)) && queue.push(object("/b", 400)));
    assert!(!queue.push(object("/c", 400)));
    assert_eq!(queue.len(), 2);
    queue.close();
    assert!(!queue.push(object("/d", 0)));
    assert!(queue.next().is_some() && queue.next().is_some() && queue.next().is_none());
}
