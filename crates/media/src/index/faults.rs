//! Bad input, each case with its kind and what its message must name.

mod anywhere;
mod pieces;
mod tables;

use super::testing::{Base, Fragment, Layout, MuxTrack, fragmented, progressive, row};
use super::{Indexer, index_bytes};
use crate::bytes::{write_box, write_full_box};
use crate::error::{Error, Kind};
use anywhere::rows;

fn tracks() -> Vec<MuxTrack> {
    let video = (0..12).map(|n| row(512, n % 3 * 512, 90 + n as u32, n % 4 == 0));
    let audio = (0..9).map(|n| row(1024, 0, 30 + n, true));
    vec![
        MuxTrack::video(1, video.collect()),
        MuxTrack::audio(2, audio.collect()),
    ]
}

fn plain(moov_first: bool) -> Vec<u8> {
    let chunks = vec![(0, 4), (1, 3), (0, 4), (1, 3)];
    let layout = Layout {
        moov_first,
        chunks,
        ..Layout::default()
    };
    progressive(&tracks(), &layout).file()
}

fn fragments() -> Vec<u8> {
    let one = |trafs| Fragment {
        base: Base::Moof,
        explicit: false,
        tfdt: true,
        stray: 0,
        trafs,
    };
    let all = [
        one(vec![(0, vec![4]), (1, vec![3])]),
        one(vec![(0, vec![8]), (1, vec![6])]),
    ];
    fragmented(&tracks(), 0, &all).file()
}

/// The body of the first box called `name`, to be broken.
fn body<'a>(file: &'a mut [u8], name: &[u8; 4]) -> &'a mut [u8] {
    let at = file.windows(4).position(|window| window == name).unwrap();
    &mut file[at + 4..]
}

fn fails(file: &[u8], kind: Kind, words: &[&str]) -> Error {
    let error = index_bytes(file).map(|index| index.notes).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{text:?} does not name {word:?}");
    }
    error
}

fn broken(name: &[u8; 4], change: impl Fn(&mut [u8]), kind: Kind, words: &[&str]) {
    for moov_first in [false, true] {
        let mut file = plain(moov_first);
        change(body(&mut file, name));
        fails(&file, kind, words);
    }
}

#[test]
fn nothing_or_not_a_film() {
    fails(b"", Kind::Empty, &["file is empty"]);
    fails(b"\0\0", Kind::Truncated, &["within a box header"]);
    fails(
        b"<!doctype html><p>Not a film</p>",
        Kind::Malformed,
        &["not an MP4"],
    );
    fails(
        &[0x1a, 0x45, 0xdf, 0xa3, 1, 2, 3, 4, 5, 6],
        Kind::Malformed,
        &["not an MP4"],
    );
    fails(b"\0\0\0\x08free", Kind::Malformed, &["no moov box"]);
    fails(&[0xff; 64], Kind::Malformed, &["not an MP4"]);
    fails(
        b"\0\0\0\x03moov",
        Kind::Malformed,
        &["3 bytes", "at byte 0"],
    );
}

#[test]
fn media_that_is_not_there() {
    let first = plain(true);
    let cut = &first[..first.len() - 1];
    fails(
        cut,
        Kind::Truncated,
        &["track 2: sample 8", "the file ends at byte"],
    );
    let last = plain(false);
    fails(&last[..last.len() / 3], Kind::Truncated, &["mdat", "left"]);
    let without = first
        .windows(4)
        .position(|window| window == b"mdat")
        .unwrap()
        - 4;
    fails(
        &first[..without],
        Kind::Truncated,
        &["track 1: sample 0", "byte"],
    );
    let file = fragments();
    fails(
        &file[..file.len() - 1],
        Kind::Truncated,
        &["track 2: sample 8", "ends at byte"],
    );
    let mut file = plain(true);
    body(&mut file, b"stco")[8..12].copy_from_slice(&60u32.to_be_bytes());
    fails(&file, Kind::Malformed, &["chunk 1", "within the moov box"]);
}

#[test]
fn a_film_without_samples() {
    let mut empty = tracks();
    empty.iter_mut().for_each(|track| track.rows.clear());
    let layout = Layout::default();
    fails(
        &progressive(&empty, &layout).file(),
        Kind::Empty,
        &["no samples"],
    );
    fails(
        &progressive(&[], &layout).file(),
        Kind::Empty,
        &["no tracks"],
    );
    fails(
        &fragmented(&tracks(), 0, &[]).file(),
        Kind::Empty,
        &["initialization segment"],
    );
    let file = fragments();
    let moof = file
        .windows(4)
        .position(|window| window == b"moof")
        .unwrap()
        - 4;
    fails(&file[moof..], Kind::Malformed, &["fragments but no moov"]);
}

#[test]
fn a_moov_after_its_fragments_or_compressed() {
    let file = fragments();
    let moof = file
        .windows(4)
        .position(|window| window == b"moof")
        .unwrap()
        - 4;
    let turned = [&file[moof..], &file[..moof]].concat();
    fails(
        &turned,
        Kind::Malformed,
        &["fragments come before the moov"],
    );
    let mut file = plain(true);
    body(&mut file, b"moov")[4..8].copy_from_slice(b"cmov");
    fails(&file, Kind::Unsupported, &["compressed"]);
}

#[test]
fn one_empty_track_is_left_out_and_noted() {
    let mut film = tracks();
    film[0].rows.clear();
    let index = index_bytes(&progressive(&film, &Layout::default()).file()).unwrap();
    assert_eq!(
        index
            .tracks
            .iter()
            .map(|track| track.id)
            .collect::<Vec<_>>(),
        [2]
    );
    assert!(
        index
            .notes
            .iter()
            .any(|note| note.track == 1 && note.what.contains("no samples"))
    );
}

#[test]
fn tracks_we_do_not_package_are_left_out_and_noted() {
    let mut film = tracks();
    film[1].handler = *b"text";
    let file = |film: &[MuxTrack]| progressive(film, &Layout::default()).file();
    let index = index_bytes(&file(&film)).unwrap();
    assert_eq!(index.tracks.len(), 1);
    assert!(index.notes[0].what.contains("text"), "{:?}", index.notes);
    film[0].entries[0][4..8].copy_from_slice(b"apcn");
    fails(
        &file(&film),
        Kind::Unsupported,
        &["track 1", "apcn", "track 2", "text"],
    );
    film[0].entries[0][4..8].copy_from_slice(b"encv");
    fails(&file(&film), Kind::Unsupported, &["encv"]);
}

#[test]
fn several_sample_entries_are_fine_if_one_is_used() {
    let mut film = tracks();
    let other = [&film[0].entries[0][..], b""].concat();
    film[0].entries.insert(0, other.clone());
    film[0].entries[0][60] ^= 1;
    film[0].description = 2;
    let layout = Layout {
        chunks: vec![(0, 4), (0, 3)],
        ..Layout::default()
    };
    let file = progressive(&film, &layout).file();
    assert_eq!(
        index_bytes(&file).unwrap().tracks[0].codec.sample_entry,
        other
    );
    let mut mixed = file;
    body(&mut mixed, b"stsc")[19] = 1;
    fails(&mixed, Kind::Unsupported, &["several sample entries"]);
}

#[test]
fn a_thousand_boxes_deep() {
    let mut file = Vec::new();
    for _ in 0..1000 {
        let inner = std::mem::take(&mut file);
        write_box(&mut file, b"moov", |out| out.extend(inner));
    }
    fails(&file, Kind::Malformed, &["no mvhd box", "moov"]);
    let mut mdia = Vec::new();
    for _ in 0..1000 {
        let inner = std::mem::take(&mut mdia);
        write_box(&mut mdia, b"mdia", |out| out.extend(inner));
    }
    let mut file = Vec::new();
    write_box(&mut file, b"moov", |out| {
        write_full_box(out, b"mvhd", 0, 0, |out| out.resize(out.len() + 96, 1));
        write_box(out, b"trak", |out| {
            write_full_box(out, b"tkhd", 0, 0, |out| out.resize(out.len() + 80, 0));
            out.extend(mdia);
        });
    });
    fails(&file, Kind::Malformed, &["no hdlr box", "moov/trak/mdia"]);
}

#[test]
fn a_moov_larger_than_the_bound_is_refused_before_it_is_read() {
    let len = 40 << 30;
    let mut indexer = Indexer::new(len);
    let mut head = b"\0\0\0\x01moov".to_vec();
    head.extend((len).to_be_bytes());
    head.resize(65_536, 0);
    let error = indexer.feed(&head).unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
    assert!(error.what.contains("at most 1073741824"), "{error}");
}

#[test]
fn a_store_that_gives_less_than_it_announced() {
    let file = plain(false);
    let mut indexer = Indexer::new(file.len() as u64 + 1000);
    indexer.feed(&file).unwrap();
    let error = indexer.feed(&[]).unwrap_err();
    assert_eq!(
        (error.kind, error.at),
        (Kind::Truncated, Some(file.len() as u64))
    );
    let unread = Indexer::new(100).finish().unwrap_err();
    assert_eq!(unread.kind, Kind::Truncated);
}

#[test]
fn odd_ends_of_fragmented_files() {
    let whole = index_bytes(&fragments()).unwrap();
    for (end, note) in [
        (&[0u8; 100][..], "zero bytes"),
        (b"abc", "bytes after the last box"),
        (b"\0\0\x10\0free", "free, is cut short"),
    ] {
        let index = index_bytes(&[&fragments()[..], end].concat()).unwrap();
        assert_eq!(rows(&index), rows(&whole));
        assert!(
            index.notes.iter().any(|found| found.what.contains(note)),
            "{:?}",
            index.notes
        );
    }
    let garbage = [&fragments()[..], &[0x80; 20]].concat();
    fails(&garbage, Kind::Malformed, &["no box here"]);
    let cut_moof = [&fragments()[..], b"\0\0\x10\0moof"].concat();
    fails(&cut_moof, Kind::Truncated, &["moof", "4096 bytes"]);
}
