//! Files that are fed in pieces, sound or broken: the outcome is that of the whole.

use super::super::Indexer;
use super::super::testing::{Layout, MuxTrack, progressive, row};
use super::{fragments, index_bytes, plain, tracks};
use crate::mp4;
use proptest::prelude::*;

/// An index MP4 of `film.mp4`, with its mark or without.
fn names_another(marked: bool) -> Vec<u8> {
    let index = index_bytes(&plain(true)).unwrap();
    let mut file = mp4::index_file(&index, "film.mp4").unwrap();
    if !marked {
        rename(&mut file, b"uuid", b"free");
    }
    file
}

/// The same of two films, one of them the file's own bytes.
fn names_several() -> Vec<u8> {
    let mut file = names_another(false);
    let second = file.windows(8).rposition(|name| name == b"film.mp4");
    file[second.unwrap()] = b'F';
    file
}

/// Tracks that claim more samples than they have bytes for, each of one size.
fn of_one_size(moov_first: bool) -> Vec<u8> {
    let sound = (0..400).map(|_| row(1024, 0, 3, true)).collect();
    let tracks = [MuxTrack::audio(1, sound), tracks().swap_remove(0)];
    let layout = Layout {
        moov_first,
        ..Layout::default()
    };
    progressive(&tracks, &layout).file()
}

/// One box follows on another of its kind, and on the film a part of it.
fn twice(name: &[u8; 4]) -> Vec<u8> {
    let file = plain(true);
    let at = file.windows(4).position(|found| found == name).unwrap() - 4;
    let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    [&file[..at + len], &file[at..]].concat()
}

fn rename(file: &mut [u8], from: &[u8; 4], to: &[u8; 4]) {
    let at = file.windows(4).position(|name| name == from).unwrap();
    file[at..at + 4].copy_from_slice(to);
}

/// A language by number, which is one only in QuickTime files.
fn of_brand(brand: &[u8; 4]) -> Vec<u8> {
    let mut file = plain(true);
    file[8..12].copy_from_slice(brand);
    file[16..20].copy_from_slice(brand);
    super::body(&mut file, b"mdhd")[20..22].fill(0);
    file
}

fn files() -> Vec<Vec<u8>> {
    let mut compressed = plain(true);
    rename(&mut compressed, b"mvhd", b"cmov");
    let mut runs_over = plain(true);
    let trak = runs_over.windows(4).position(|name| name == b"trak");
    runs_over[trak.unwrap() - 2] = 0xff;
    vec![
        plain(true),
        plain(false),
        fragments(),
        names_another(true),
        names_another(false),
        names_several(),
        of_one_size(true),
        of_one_size(false),
        twice(b"moov"),
        twice(b"trak"),
        twice(b"ftyp"),
        of_brand(b"qt  "),
        of_brand(b"isom"),
        compressed,
        runs_over,
    ]
}

/// All that comes of a file, errors included, if so many bytes at a time are fed. `len`: of the media
/// that it names.
fn outcome(file: &[u8], len: u64, mut piece: impl FnMut() -> usize) -> String {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(need) = indexer.need() {
        let start = need.start as usize;
        let end = file.len().min(start.saturating_add(piece()));
        if let Err(error) = indexer.feed(&file[start..end]) {
            return format!("{error:?}");
        }
    }
    let Some(mut references) = indexer.take_references() else {
        return format!("{:?}", indexer.finish());
    };
    let places = references.places().to_vec();
    let indexes: Vec<_> = (0..places.len())
        .map(|n| references.index(n, len))
        .collect();
    format!("{places:?} {indexes:?}")
}

/// How long the films are that the index MP4s above name.
fn media_len() -> u64 {
    plain(true).len() as u64
}

#[test]
fn byte_by_byte_is_the_same() {
    for (n, file) in files().iter().enumerate() {
        for len in [0, 100, media_len(), u64::MAX >> 1] {
            let whole = outcome(file, len, || usize::MAX);
            assert_eq!(outcome(file, len, || 1), whole, "file {n}, media of {len}");
        }
    }
}

#[test]
fn cut_at_every_byte_and_fed_by_some() {
    for (n, file) in files().iter().enumerate() {
        for cut in (0..file.len()).step_by(7) {
            let whole = outcome(&file[..cut], media_len(), || usize::MAX);
            let pieces = outcome(&file[..cut], media_len(), || 61);
            assert_eq!(pieces, whole, "file {n}, cut at byte {cut}");
        }
    }
}

proptest! {
    #[test]
    fn garbage_in_pieces_is_the_same(
        which in any::<proptest::sample::Index>(), seed in any::<u64>(), len in 0u64..4000,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6)
    ) {
        let mut file = which.get(&files()).clone();
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        let mut state = seed;
        let mut piece = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            1 + (state >> 33) as usize % 300
        };
        for len in [len, media_len()] {
            prop_assert_eq!(outcome(&file, len, &mut piece), outcome(&file, len, || usize::MAX));
        }
    }
}
