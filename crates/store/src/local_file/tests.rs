use super::*;
use crate::{Folder, Key};
use std::fs;
use std::io::Write;
use std::time::{Duration, SystemTime};

const LEN: usize = 300_000;

fn open_film(dir: &std::path::Path) -> (std::path::PathBuf, Vec<u8>, Arc<LocalFile>) {
    let bytes: Vec<u8> = (0..LEN).map(|n| (n * 7 % 251) as u8).collect();
    let path = dir.join("film.mp4");
    fs::write(&path, &bytes).unwrap();
    let folder = Folder::new(dir).unwrap();
    let object = folder.open(&Key::parse("film.mp4").unwrap()).unwrap();
    (path, bytes, object)
}

fn slice_one(object: &LocalFile, range: Range<u64>) -> Option<Bytes> {
    Some(
        object
            .mapping()?
            .slice(range.start as usize..range.end as usize),
    )
}

#[test]
fn read_and_slice_give_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes, object) = open_film(dir.path());
    for range in [
        0..0,
        0..1,
        1..4097,
        4095..4097,
        0..LEN,
        LEN - 1..LEN,
        LEN..LEN,
    ] {
        let wanted = range.start as u64..range.end as u64;
        let read = object.read(wanted.clone(), RequestReason::Plain).unwrap();
        assert_eq!(read, &bytes[range.clone()]);
        let mut into = vec![0; range.len()];
        object.read_into(wanted.start, &mut into).unwrap();
        assert_eq!(into, &bytes[range.clone()]);
        let slice = slice_one(&object, wanted).unwrap();
        assert_eq!(slice, &bytes[range]);
    }
    object
        .check_and_count_request([0..1, 5..9], RequestReason::Plain)
        .unwrap();
    assert_eq!(object.meter.request_count(RequestReason::Plain), 8);
    assert_eq!(object.meter.request_count(RequestReason::Index), 0);
}

#[test]
fn neighbouring_ranges_are_read_with_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes, object) = open_film(dir.path());
    // Ranges of 800 bytes with gaps of 400 bytes, as in a film that interleaves video and audio.
    let interleaved: Vec<_> = (0..237).map(|n| n * 1200..n * 1200 + 800).collect();
    // A range far from the others, an empty range, and two overlapping ranges in descending order.
    let mixed = vec![290_000..299_000, 5..5, 600..4_000, 100..700];
    for (ranges, reads) in [(interleaved, 1), (mixed, 2), (vec![], 0)] {
        let before = object.meter.request_count(RequestReason::Segment);
        let found = object.read_ranges(&ranges, RequestReason::Segment).unwrap();
        assert_eq!(
            object.meter.request_count(RequestReason::Segment) - before,
            reads
        );
        assert_eq!(found.len(), ranges.len());
        for (range, found) in ranges.iter().zip(found) {
            assert_eq!(found, &bytes[range.start as usize..range.end as usize]);
        }
    }
    // Short ranges with long gaps are read separately, because the gaps would otherwise stay in
    // memory.
    let sparse: Vec<_> = (0..10).map(|n| n * 8_000..n * 8_000 + 100).collect();
    object
        .read_ranges(&sparse, RequestReason::Manifest)
        .unwrap();
    assert_eq!(object.meter.request_count(RequestReason::Manifest), 10);
    let beyond = object.read_ranges(&[0..1, 0..object.len() + 1], RequestReason::Segment);
    assert!(matches!(beyond, Err(Error::Changed)));
}

#[test]
fn neighbouring_ranges_are_read_into_one_buffer_with_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes, object) = open_film(dir.path());
    let interleaved: Vec<_> = (0..237).map(|n| n * 1200..n * 1200 + 800).collect();
    // These ranges need more buffers than the kernel accepts in one call.
    let many: Vec<_> = (0..1200).map(|n| n * 200..n * 200 + 101).collect();
    let mixed = vec![290_000..299_000, 5..5, 600..4_000, 4_000..4_001, 100..700];
    let sparse: Vec<_> = (0..10).map(|n| n * 8_000..n * 8_000 + 100).collect();
    for (ranges, reads) in [
        (interleaved, 1),
        (many, 3),
        (mixed, 3),
        (sparse, 10),
        (vec![], 0),
    ] {
        let before = object.meter.request_count(RequestReason::Segment);
        let slices = ranges
            .iter()
            .map(|range| &bytes[range.start as usize..range.end as usize]);
        let expected = slices.collect::<Vec<_>>().concat();
        let mut out = vec![0; expected.len() + 1];
        let read = object.read_ranges_into(&ranges, &mut out, RequestReason::Segment);
        read.unwrap();
        assert_eq!(
            object.meter.request_count(RequestReason::Segment) - before,
            reads
        );
        assert!(out[..expected.len()] == expected && out[expected.len()] == 0);
    }
    let mut out = [0; 2];
    let short = object.read_ranges_into(&[0..1, 1..3], &mut out, RequestReason::Segment);
    assert!(matches!(short, Err(Error::Refused(_))));
    let too_long = 0..object.len() + 1;
    let beyond = object.read_ranges_into(&[too_long], &mut out, RequestReason::Segment);
    assert!(matches!(beyond, Err(Error::Changed)));
}

#[test]
fn a_range_beyond_the_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, _, object) = open_film(dir.path());
    let len = object.len();
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..len + 1, len..len + 1, u64::MAX - 1..u64::MAX, 2..1] {
        let mut more = vec![0; LEN + 1];
        assert!(object.read_into(range.start, &mut more).is_err());
        assert!(
            object
                .check_and_count_request([0..1, range.clone()], RequestReason::Index)
                .is_err()
        );
        assert!(matches!(
            object.read(range, RequestReason::Plain),
            Err(Error::Changed)
        ));
    }
}

#[test]
fn bytes_are_resident_after_warming() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _, object) = open_film(dir.path());
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    let all = 0..object.len();
    object.warm(all.clone(), RequestReason::Segment).unwrap();
    assert_eq!(object.meter.storage_wait_count(RequestReason::Segment), 1);
    if !object.is_range_resident(&all) {
        eprintln!("skipped: this file system does not report which pages are in memory");
    }
}

#[test]
fn overwriting_truncating_and_growing_are_detected() {
    type Change = fn(&std::path::Path);
    let changes: [Change; 3] = [
        |path| fs::write(path, vec![1; LEN]).unwrap(),
        |path| {
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(10)
                .unwrap()
        },
        |path| {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(b"more").unwrap();
        },
    ];
    for change in changes {
        let dir = tempfile::tempdir().unwrap();
        let (path, ..) = open_film(dir.path());
        // Modification times may have a resolution of only 10 ms, so the test first sets an older
        // time.
        let old = SystemTime::now() - Duration::from_secs(60);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
        let folder = Folder::new(dir.path()).unwrap();
        let object = folder.open(&Key::parse("film.mp4").unwrap()).unwrap();
        assert!(!object.changed());
        change(&path);
        assert!(object.changed());
    }
}

#[test]
fn a_truncated_file_is_an_error_and_not_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _, object) = open_film(dir.path());
    let slice = slice_one(&object, 200_000..LEN as u64).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(10)
        .unwrap();
    assert!(matches!(
        object.read(0..100, RequestReason::Segment),
        Err(Error::Changed)
    ));
    assert!(
        object
            .warm(200_000..LEN as u64, RequestReason::Segment)
            .is_err()
    );
    // Writing the mapped slice to another file fails with `EFAULT`, because the mapped file was
    // truncated.
    let mut sink = fs::File::create(dir.path().join("sink")).unwrap();
    assert!(sink.write_all(&slice).is_err());
}

#[test]
fn a_replaced_file_keeps_its_bytes_for_open_readers() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes, object) = open_film(dir.path());
    let new = dir.path().join("new");
    fs::write(&new, b"another film").unwrap();
    fs::rename(&new, &path).unwrap();
    assert!(!object.changed());
    assert_eq!(
        object.read(0..object.len(), RequestReason::Plain).unwrap(),
        bytes
    );
    let folder = Folder::new(dir.path()).unwrap();
    let now = folder.look_up(&Key::parse("film.mp4").unwrap()).unwrap();
    assert_ne!(now.as_ref(), Some(object.version()));
}
