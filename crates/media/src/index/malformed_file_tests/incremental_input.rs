//! Feeds intact and broken files in pieces. The outcome must be the same as when the whole file is
//! fed at once.

use super::super::Indexer;
use super::super::testing::{
    ProgressiveLayout, SyntheticTrack, build_synthetic_progressive, unplaced_sample,
};
use super::{build_fragmented, build_progressive, build_synthetic_tracks, index_file_in_memory};
use crate::mp4;
use proptest::prelude::*;

/// Builds an index MP4 of `film.mp4`. Unless `marked` is set, the index MP4 has no source record.
fn build_index_mp4(marked: bool) -> Vec<u8> {
    let index = index_file_in_memory(&build_progressive(true)).unwrap();
    let mut file = mp4::write_index_mp4(&index, "film.mp4").unwrap();
    if !marked {
        rename_box(&mut file, b"uuid", b"free");
    }
    file
}

/// Builds an index MP4 that references two files, `film.mp4` and `Film.mp4`.
fn build_index_mp4_of_two_files() -> Vec<u8> {
    let mut file = build_index_mp4(false);
    let second = file.windows(8).rposition(|name| name == b"film.mp4");
    file[second.unwrap()] = b'F';
    file
}

/// Builds a film in which `stsz` stores one common size for all 400 audio samples.
fn build_constant_size_film(moov_first: bool) -> Vec<u8> {
    let sound = (0..400)
        .map(|_| unplaced_sample(1024, 0, 3, true))
        .collect();
    let tracks = [
        SyntheticTrack::audio(1, sound),
        build_synthetic_tracks().swap_remove(0),
    ];
    let layout = ProgressiveLayout {
        moov_first,
        ..ProgressiveLayout::default()
    };
    build_synthetic_progressive(&tracks, &layout).to_bytes()
}

/// Builds a progressive film in which the first box called `name` occurs twice.
fn build_film_repeating_box(name: &[u8; 4]) -> Vec<u8> {
    let file = build_progressive(true);
    let at = file.windows(4).position(|found| found == name).unwrap() - 4;
    let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    [&file[..at + len], &file[at..]].concat()
}

fn rename_box(file: &mut [u8], from: &[u8; 4], to: &[u8; 4]) {
    let at = file.windows(4).position(|name| name == from).unwrap();
    file[at..at + 4].copy_from_slice(to);
}

/// Builds a film with this brand and with a Macintosh language code. Such a code is valid only in
/// QuickTime files.
fn build_film_of_brand(brand: &[u8; 4]) -> Vec<u8> {
    let mut file = build_progressive(true);
    file[8..12].copy_from_slice(brand);
    file[16..20].copy_from_slice(brand);
    super::body_of(&mut file, b"mdhd")[20..22].fill(0);
    file
}

fn build_intact_and_broken_files() -> Vec<Vec<u8>> {
    let mut compressed = build_progressive(true);
    rename_box(&mut compressed, b"mvhd", b"cmov");
    let mut runs_over = build_progressive(true);
    let trak = runs_over.windows(4).position(|name| name == b"trak");
    runs_over[trak.unwrap() - 2] = 0xff;
    vec![
        build_progressive(true),
        build_progressive(false),
        build_fragmented(),
        build_index_mp4(true),
        build_index_mp4(false),
        build_index_mp4_of_two_files(),
        build_constant_size_film(true),
        build_constant_size_film(false),
        build_film_repeating_box(b"moov"),
        build_film_repeating_box(b"trak"),
        build_film_repeating_box(b"ftyp"),
        build_film_of_brand(b"qt  "),
        build_film_of_brand(b"isom"),
        compressed,
        runs_over,
    ]
}

/// Feeds a file in pieces of the sizes that `piece` returns. Returns the outcome as text, including
/// errors. `len` is the length of the media that the file references.
fn feed_in_pieces(file: &[u8], len: u64, mut piece: impl FnMut() -> usize) -> String {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(need) = indexer.needed_range() {
        let start = need.start as usize;
        let end = file.len().min(start.saturating_add(piece()));
        if let Err(error) = indexer.feed(&file[start..end]) {
            return format!("{error:?}");
        }
    }
    let Some(mut references) = indexer.take_references() else {
        return format!("{:?}", indexer.finish());
    };
    let places = references.data_references().to_vec();
    let indexes: Vec<_> = (0..places.len())
        .map(|n| references.build_index(n, len))
        .collect();
    format!("{places:?} {indexes:?}")
}

/// Returns the length of the film that the index MP4s reference.
fn progressive_len() -> u64 {
    build_progressive(true).len() as u64
}

#[test]
fn feeding_byte_by_byte_gives_the_same_outcome() {
    for (n, file) in build_intact_and_broken_files().iter().enumerate() {
        for len in [0, 100, progressive_len(), u64::MAX >> 1] {
            let whole = feed_in_pieces(file, len, || usize::MAX);
            assert_eq!(
                feed_in_pieces(file, len, || 1),
                whole,
                "file {n}, media of {len}"
            );
        }
    }
}

#[test]
fn feeding_a_cut_file_in_pieces_gives_the_same_outcome() {
    for (n, file) in build_intact_and_broken_files().iter().enumerate() {
        for cut in (0..file.len()).step_by(7) {
            let whole = feed_in_pieces(&file[..cut], progressive_len(), || usize::MAX);
            let pieces = feed_in_pieces(&file[..cut], progressive_len(), || 61);
            assert_eq!(pieces, whole, "file {n}, cut at byte {cut}");
        }
    }
}

proptest! {
    #[test]
    fn feeding_garbage_in_pieces_gives_the_same_outcome(
        which in any::<proptest::sample::Index>(), seed in any::<u64>(), len in 0u64..4000,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6)
    ) {
        let mut file = which.get(&build_intact_and_broken_files()).clone();
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        let mut state = seed;
        let mut piece = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            1 + (state >> 33) as usize % 300
        };
        for len in [len, progressive_len()] {
            prop_assert_eq!(feed_in_pieces(&file, len, &mut piece), feed_in_pieces(&file, len, || usize::MAX));
        }
    }
}
