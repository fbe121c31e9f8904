//! Broken files, each with the kind of the expected error and words that the error message must
//! contain.

mod damage_at_any_byte;
mod incremental_input;
mod partly_intact;
mod tables;

use super::testing::{
    OffsetBase, ProgressiveLayout, SyntheticFragment, SyntheticTrack, build_synthetic_progressive,
    mux_fragmented, unplaced_sample,
};
use super::{Index, Indexer, index_file_in_memory};
use crate::bytes::{write_box, write_full_box};
use crate::error::{Error, ErrorKind};
use damage_at_any_byte::collect_samples;

fn build_synthetic_tracks() -> Vec<SyntheticTrack> {
    let video = (0..12).map(|n| unplaced_sample(512, n % 3 * 512, 90 + n as u32, n % 4 == 0));
    let audio = (0..9).map(|n| unplaced_sample(1024, 0, 30 + n, true));
    vec![
        SyntheticTrack::video(1, video.collect()),
        SyntheticTrack::audio(2, audio.collect()),
    ]
}

fn build_progressive(moov_first: bool) -> Vec<u8> {
    let chunks = vec![(0, 4), (1, 3), (0, 4), (1, 3)];
    let layout = ProgressiveLayout {
        moov_first,
        chunks,
        ..ProgressiveLayout::default()
    };
    build_synthetic_progressive(&build_synthetic_tracks(), &layout).to_bytes()
}

fn build_fragmented() -> Vec<u8> {
    let one = |trafs| SyntheticFragment {
        offset_base: OffsetBase::Moof,
        has_explicit_fields: false,
        has_tfdt: true,
        stray_boxes: 0,
        trafs,
    };
    let all = [
        one(vec![(0, vec![4]), (1, vec![3])]),
        one(vec![(0, vec![8]), (1, vec![6])]),
    ];
    mux_fragmented(&build_synthetic_tracks(), 0, &all).to_bytes()
}

/// Returns the bytes from the start of the body of the first box called `name` to the end of the
/// file. Tests change these bytes.
fn body_of<'a>(file: &'a mut [u8], name: &[u8; 4]) -> &'a mut [u8] {
    let at = file.windows(4).position(|window| window == name).unwrap();
    &mut file[at + 4..]
}

/// Returns the name and the reason of each part of the film that is left out.
fn left_out_of(index: &Index) -> Vec<String> {
    let entries = index.left_out.iter();
    entries
        .map(|track| format!("{}: {}", track.name, track.reason))
        .collect()
}

fn expect_error(file: &[u8], kind: ErrorKind, words: &[&str]) -> Error {
    let error = index_file_in_memory(file)
        .map(|index| index.notes)
        .unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{text:?} does not name {word:?}");
    }
    error
}

fn expect_error_after(name: &[u8; 4], change: impl Fn(&mut [u8]), kind: ErrorKind, words: &[&str]) {
    for moov_first in [false, true] {
        let mut file = build_progressive(moov_first);
        change(body_of(&mut file, name));
        expect_error(&file, kind, words);
    }
}

#[test]
fn files_that_are_no_mp4_are_refused() {
    expect_error(b"", ErrorKind::Empty, &["file is empty"]);
    expect_error(b"\0\0", ErrorKind::Truncated, &["within a box header"]);
    expect_error(
        b"<!doctype html><p>Not a film</p>",
        ErrorKind::Malformed,
        &["not an MP4"],
    );
    expect_error(
        &[0x1a, 0x45, 0xdf, 0xa3, 1, 2, 3, 4, 5, 6],
        ErrorKind::Malformed,
        &["not an MP4"],
    );
    expect_error(b"\0\0\0\x08free", ErrorKind::Malformed, &["no moov box"]);
    expect_error(&[0xff; 64], ErrorKind::Malformed, &["not an MP4"]);
    expect_error(
        b"\0\0\0\x03moov",
        ErrorKind::Malformed,
        &["3 bytes", "at byte 0"],
    );
}

#[test]
fn missing_media_is_reported_with_its_sample() {
    let first = build_progressive(true);
    let cut = &first[..first.len() - 1];
    expect_error(
        cut,
        ErrorKind::Truncated,
        &["track 2: sample 8", "the file ends at byte"],
    );
    let last = build_progressive(false);
    expect_error(
        &last[..last.len() / 3],
        ErrorKind::Truncated,
        &["mdat", "left"],
    );
    let without = first
        .windows(4)
        .position(|window| window == b"mdat")
        .unwrap()
        - 4;
    expect_error(
        &first[..without],
        ErrorKind::Truncated,
        &["track 1: sample 0", "byte"],
    );
    let mut file = build_progressive(true);
    body_of(&mut file, b"stco")[8..12].copy_from_slice(&60u32.to_be_bytes());
    expect_error(
        &file,
        ErrorKind::Malformed,
        &["chunk 1", "within the moov box"],
    );
}

#[test]
fn a_film_without_samples_is_refused() {
    let mut empty = build_synthetic_tracks();
    empty.iter_mut().for_each(|track| track.rows.clear());
    let layout = ProgressiveLayout::default();
    expect_error(
        &build_synthetic_progressive(&empty, &layout).to_bytes(),
        ErrorKind::Empty,
        &["no samples"],
    );
    expect_error(
        &build_synthetic_progressive(&[], &layout).to_bytes(),
        ErrorKind::Empty,
        &["no tracks"],
    );
    expect_error(
        &mux_fragmented(&build_synthetic_tracks(), 0, &[]).to_bytes(),
        ErrorKind::Empty,
        &["initialization segment"],
    );
    let file = build_fragmented();
    let moof = file
        .windows(4)
        .position(|window| window == b"moof")
        .unwrap()
        - 4;
    expect_error(
        &file[moof..],
        ErrorKind::Malformed,
        &["fragments but no moov"],
    );
}

#[test]
fn a_moov_after_its_fragments_or_compressed_is_refused() {
    let file = build_fragmented();
    let moof = file
        .windows(4)
        .position(|window| window == b"moof")
        .unwrap()
        - 4;
    let turned = [&file[moof..], &file[..moof]].concat();
    expect_error(
        &turned,
        ErrorKind::Malformed,
        &["fragments come before the moov"],
    );
    let mut file = build_progressive(true);
    body_of(&mut file, b"moov")[4..8].copy_from_slice(b"cmov");
    expect_error(&file, ErrorKind::Unsupported, &["compressed"]);
}

#[test]
fn one_empty_track_is_left_out() {
    let mut film = build_synthetic_tracks();
    film[0].rows.clear();
    let index = index_file_in_memory(
        &build_synthetic_progressive(&film, &ProgressiveLayout::default()).to_bytes(),
    )
    .unwrap();
    assert_eq!(
        index
            .tracks
            .iter()
            .map(|track| track.id)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(left_out_of(&index), ["track 1: it has no samples"]);
}

#[test]
fn unsupported_tracks_are_left_out() {
    let mut film = build_synthetic_tracks();
    film[1].handler = *b"text";
    let file = |film: &[SyntheticTrack]| {
        build_synthetic_progressive(film, &ProgressiveLayout::default()).to_bytes()
    };
    let index = index_file_in_memory(&file(&film)).unwrap();
    assert_eq!(index.tracks.len(), 1);
    assert_eq!(
        left_out_of(&index),
        ["track 2 (text, mp4a): text is neither audio nor video"]
    );
    film[0].entries[0][4..8].copy_from_slice(b"apcn");
    expect_error(
        &file(&film),
        ErrorKind::Unsupported,
        &["track 1", "apcn", "track 2", "text"],
    );
    film[0].entries[0][4..8].copy_from_slice(b"encv");
    expect_error(&file(&film), ErrorKind::Unsupported, &["encv"]);
}

#[test]
fn several_sample_entries_are_accepted_if_one_is_used() {
    let mut film = build_synthetic_tracks();
    let other = [&film[0].entries[0][..], b""].concat();
    film[0].entries.insert(0, other.clone());
    film[0].entries[0][60] ^= 1;
    film[0].description_index = 2;
    let layout = ProgressiveLayout {
        chunks: vec![(0, 4), (0, 3)],
        ..ProgressiveLayout::default()
    };
    let file = build_synthetic_progressive(&film, &layout).to_bytes();
    assert_eq!(
        index_file_in_memory(&file).unwrap().tracks[0]
            .codec
            .sample_entry,
        other
    );
    let mut mixed = file;
    body_of(&mut mixed, b"stsc")[19] = 1;
    expect_error(&mixed, ErrorKind::Unsupported, &["several sample entries"]);
}

#[test]
fn a_thousand_nested_boxes_are_refused() {
    let mut file = Vec::new();
    for _ in 0..1000 {
        let inner = std::mem::take(&mut file);
        write_box(&mut file, b"moov", |out| out.extend(inner));
    }
    expect_error(&file, ErrorKind::Malformed, &["no mvhd box", "moov"]);
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
    expect_error(
        &file,
        ErrorKind::Malformed,
        &["no hdlr box", "moov/trak/mdia"],
    );
}

#[test]
fn a_moov_larger_than_the_bound_is_refused_before_it_is_read() {
    let len = 40 << 30;
    let mut indexer = Indexer::new(len);
    let mut head = b"\0\0\0\x01moov".to_vec();
    head.extend((len).to_be_bytes());
    head.resize(65_536, 0);
    let error = indexer.feed(&head).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("at most 1073741824"), "{error}");
}

#[test]
fn a_file_shorter_than_announced_is_refused() {
    let file = build_progressive(false);
    let mut indexer = Indexer::new(file.len() as u64 + 1000);
    indexer.feed(&file).unwrap();
    let error = indexer.feed(&[]).unwrap_err();
    assert_eq!(
        (error.kind, error.byte_offset),
        (ErrorKind::Truncated, Some(file.len() as u64))
    );
    let unread = Indexer::new(100).finish().unwrap_err();
    assert_eq!(unread.kind, ErrorKind::Truncated);
}

#[test]
fn odd_ends_of_fragmented_files_are_noted() {
    let whole = index_file_in_memory(&build_fragmented()).unwrap();
    for (end, note) in [
        (&[0u8; 100][..], "zero bytes"),
        (b"abc", "bytes after the last box"),
        (b"\0\0\x10\0free", "free, is cut short"),
    ] {
        let index = index_file_in_memory(&[&build_fragmented()[..], end].concat()).unwrap();
        assert_eq!(collect_samples(&index), collect_samples(&whole));
        assert!(
            index.notes.iter().any(|found| found.message.contains(note)),
            "{:?}",
            index.notes
        );
    }
    let garbage = [&build_fragmented()[..], &[0x80; 20]].concat();
    expect_error(&garbage, ErrorKind::Malformed, &["no box here"]);
}

#[test]
fn the_notes_about_top_level_boxes_are_limited() {
    let file = build_fragmented();
    let moov = b"\0\0\0\x08moov".repeat(1000);
    let index = index_file_in_memory(&[&file[..], &moov].concat()).unwrap();
    assert_eq!(index.notes.len(), 100);
    assert!(
        index.notes[0]
            .message
            .contains("a second moov box is ignored")
    );
    let whole = index_file_in_memory(&file).unwrap();
    assert_eq!(collect_samples(&index), collect_samples(&whole));
    let notes: usize = index.notes.iter().map(|note| note.message.len()).sum();
    assert!(index.heap_bytes() >= whole.heap_bytes() + notes);
}

#[test]
fn a_pssh_box_that_is_too_short_is_ignored() {
    let mut file = build_progressive(false);
    let moov = file.windows(4).position(|name| name == b"moov").unwrap() - 4;
    file.extend(b"\0\0\0\x0cpssh\0\0\0\0");
    let len = (file.len() - moov) as u32;
    file[moov..moov + 4].copy_from_slice(&len.to_be_bytes());
    assert_eq!(index_file_in_memory(&file).unwrap().tracks.len(), 2);
}
