//! What is written is read back as the same.

use super::{Progressive, index_file};
use crate::bmff::dref::Location;
use crate::fixtures;
use crate::index::testing::{
    Base, Fragment, Layout, MuxTrack, Muxed, fragmented, progressive, row,
};
use crate::index::{Index, Indexer, References, Sample, Track, index_bytes};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// The references of a file in memory.
pub(crate) fn references(file: &[u8]) -> Option<References> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.need() {
        // In parts, as they come over a network.
        let (start, end) = (range.start as usize, range.end as usize);
        indexer.feed(&file[start..end.min(start + 300)]).unwrap();
    }
    indexer.take_references()
}

fn samples(track: &Track) -> Vec<Sample> {
    track.samples.range(0..track.samples.len()).collect()
}

fn assert_same(a: &Track, b: &Track) {
    assert_eq!(samples(a), samples(b));
    assert_eq!(
        (a.id, a.timescale, a.enabled),
        (b.id, b.timescale, b.enabled)
    );
    assert_eq!((&a.language, &a.name), (&b.language, &b.name));
    assert_eq!((a.origin, a.shown_until), (b.origin, b.shown_until));
    assert_eq!(a.matrix, b.matrix);
    assert_eq!(a.codec.sample_entry, b.codec.sample_entry);
    assert_eq!(a.codec.string, b.codec.string);
    assert_eq!(a.samples.all_sync(), b.samples.all_sync());
    assert_eq!(a.samples.heap_bytes(), b.samples.heap_bytes());
}

/// Writes an index MP4 of `index` and reads it back.
fn again(index: &Index) -> Index {
    let file = index_file(index, "../a film.mp4").unwrap();
    let mut references = references(&file).expect("an index MP4");
    assert_eq!(
        references.places(),
        [Location::Named("../a film.mp4".into())]
    );
    assert!(references.media_len().is_some());
    references.index(0, index.file_len).unwrap()
}

fn check(index: &Index) {
    let back = again(index);
    assert_eq!(back.tracks.len(), index.tracks.len());
    index
        .tracks
        .iter()
        .zip(&back.tracks)
        .for_each(|(a, b)| assert_same(a, b));
    assert_eq!(back.file_len, index.file_len);
    assert_eq!(back.fingerprint, index.fingerprint);
    assert_eq!(back.notes, index.notes);
}

fn rows() -> impl Strategy<Value = Vec<Sample>> {
    let duration = prop_oneof![6 => Just(512u32), 1 => 0u32..2000];
    let cts = prop_oneof![3 => Just(0i32), 1 => -2000i32..2000];
    let sync = prop_oneof![1 => Just(true), 3 => Just(false)];
    vec((duration, cts, 0u32..600, sync), 1..90).prop_map(|rows| {
        let row = |(duration, cts, size, sync)| row(duration, cts, size, sync);
        rows.into_iter().map(row).collect()
    })
}

/// Duration in milliseconds and media time; sometimes an empty edit first.
fn edits() -> impl Strategy<Value = Vec<(u32, i32)>> {
    let shown = (0u32..4000, 0i32..30_000);
    prop_oneof![
        2 => Just(Vec::new()),
        3 => shown.clone().prop_map(|edit| vec![edit]),
        1 => (1u32..3000, shown).prop_map(|(lead, edit)| vec![(lead, -1), edit]),
    ]
}

fn film() -> impl Strategy<Value = Vec<MuxTrack>> {
    let sound = vec(1u32..400, 1..90);
    (rows(), edits(), sound, edits()).prop_map(|(video, edits, sound, sound_edits)| {
        let sound = sound.iter().map(|size| row(1024, 0, *size, true)).collect();
        let video = MuxTrack {
            edits,
            ..MuxTrack::video(7, video)
        };
        let sound = MuxTrack {
            edits: sound_edits,
            ..MuxTrack::audio(2, sound)
        };
        vec![video, sound]
    })
}

/// The index of a muxed file, if its edit lists leave anything.
fn indexed(muxed: &Muxed) -> Option<Index> {
    index_bytes(&muxed.file()).ok()
}

fn pieces(counts: &[u32]) -> Vec<Fragment> {
    let one = |count: &u32| Fragment {
        base: Base::Moof,
        explicit: true,
        tfdt: true,
        stray: 0,
        trafs: vec![(0, vec![*count]), (1, vec![*count])],
    };
    counts.iter().chain([&1000]).map(one).collect()
}

proptest! {
    #[test]
    fn an_index_mp4_is_the_index(
        tracks in film(), chunks in vec((0usize..2, 1u32..9), 0..40), wide: bool
    ) {
        let layout = Layout { chunks, wide, ..Layout::default() };
        if let Some(index) = indexed(&progressive(&tracks, &layout)) {
            check(&index);
        }
    }

    #[test]
    fn fragments_become_tables(
        mut tracks in film(), counts in vec(1u32..30, 0..6), bases in any::<[u32; 2]>()
    ) {
        tracks.iter_mut().zip(bases).for_each(|(track, base)| track.base = base.into());
        if let Some(index) = indexed(&fragmented(&tracks, 0, &pieces(&counts))) {
            check(&index);
        }
    }

    #[test]
    fn a_progressive_file_holds_the_same_samples(
        tracks in film(), chunks in vec((0usize..2, 1u32..9), 0..40), two_files: bool
    ) {
        let layout = Layout { chunks, ..Layout::default() };
        let Some(index) = indexed(&progressive(&tracks, &layout)) else { return Ok(()) };
        let index = Arc::new(index);
        let files = if two_files { vec![index.clone(), index.clone()] } else { vec![index.clone()] };
        let made = Progressive::new(&files).unwrap();
        // The media that the ranges bring: each byte says where it was.
        let origin: Vec<u64> = made.ranges.iter().flat_map(|(_, range)| range.clone()).collect();
        prop_assert_eq!(made.len, (made.head.len() + origin.len()) as u64);
        let mut file = made.head.clone();
        file.resize(made.len as usize, 0);
        let back = index_bytes(&file).unwrap();
        prop_assert_eq!(back.tracks.len(), index.tracks.len() * files.len());
        for (a, b) in index.tracks.iter().cycle().zip(&back.tracks) {
            // Signed offsets may show a picture only before it is decoded; no edit list says that.
            if a.shown_until.is_none_or(|until| until > a.origin.max(0)) {
                prop_assert_eq!((a.origin, a.shown_until), (b.origin, b.shown_until));
            }
            for (a, b) in samples(a).iter().zip(samples(b)) {
                prop_assert_eq!((a.dts, a.cts, a.size, a.sync), (b.dts, b.cts, b.size, b.sync));
                let at = b.offset as usize - made.head.len();
                let from = origin.get(at..at + b.size as usize).unwrap_or_default();
                prop_assert!(from.iter().copied().eq(a.offset..a.offset + u64::from(a.size)));
            }
        }
    }
}

/// Hexadecimal with line breaks and spaces between.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.chars().filter(char::is_ascii_hexdigit).collect();
    crate::index::testing::hex(&digits)
}

#[test]
fn every_codec_comes_back() {
    use crate::codec::{Codec, vectors::*};
    for hex in [
        AVC,
        AVC_PQ_SAR,
        AVC_QUICKTIME,
        AVC_INTERLACED,
        AAC,
        AAC_QUICKTIME,
        AAC_51,
        AAC_71,
        MP3,
        MP3_QUICKTIME,
        HVC1_PQ,
        HEV1_422,
        AV1,
        AV1_HLG,
        VP9,
        VP9_PQ,
        AC3,
        AC3_QUICKTIME,
        EAC3,
        EAC3_QUICKTIME,
        OPUS,
        OPUS_51,
        FLAC,
        AAC_PCE_QUAD,
        AAC_PCE_61,
    ] {
        let codec = Codec::parse(&bytes(hex)).unwrap();
        let mut track = fixtures::video(1, 25, 100);
        if codec.audio().is_some() {
            track = fixtures::audio(1, 100);
        }
        track.codec = codec;
        track.language = "zh-Hant".into();
        track.name = Some("Director's cut".into());
        track.enabled = false;
        check(&fixtures::index(vec![track]));
    }
}

#[test]
fn times_that_no_movie_timescale_can_say_are_refused() {
    let late = |timescale: u32, origin: i64| {
        let mut track = fixtures::video(1, 25, 100);
        (track.timescale, track.origin) = (timescale, origin);
        track
    };
    // Large primes: only one of them may be delayed.
    let ok = fixtures::index(vec![late(4_294_967_291, 7), late(4_294_967_279, -7)]);
    check(&ok);
    let both = fixtures::index(vec![late(4_294_967_291, 7), late(4_294_967_279, 7)]);
    assert!(index_file(&both, "x").is_err());
    let never = fixtures::index(vec![late(1, 1 << 59), late(4_294_967_279, 7)]);
    assert!(index_file(&never, "x").is_err());
    assert!(
        Progressive::new(&[both]).is_ok(),
        "a tick off does not matter there"
    );
}

#[test]
fn media_of_another_length_is_refused() {
    let index = fixtures::index(vec![fixtures::video(1, 25, 100)]);
    let file = index_file(&index, "film.mp4").unwrap();
    let mut references = references(&file).unwrap();
    let error = references.index(0, index.file_len - 1).unwrap_err();
    assert!(error.what.contains("index it again"), "{error}");
}

#[test]
fn without_our_mark_samples_must_lie_within_the_media() {
    let index = fixtures::index(vec![fixtures::video(1, 25, 100)]);
    let file = index_file(&index, "film.mp4").unwrap();
    let id = file.windows(4).position(|name| name == b"uuid").unwrap();
    let mut other = file.clone();
    other[id..id + 4].copy_from_slice(b"free");
    let mut references = references(&other).unwrap();
    assert!(references.media_len().is_none());
    let whole = references.index(0, index.file_len).unwrap();
    assert_same(&whole.tracks[0], &index.tracks[0]);
    assert_ne!(whole.fingerprint, index.fingerprint);
    let error = references.index(0, 1000).unwrap_err();
    assert!(error.what.contains("the file ends at byte 1000"), "{error}");
}

#[test]
fn a_file_of_several_places_gives_an_index_of_each() {
    let one = fixtures::index(vec![fixtures::video(1, 25, 100)]);
    let two = fixtures::index(vec![fixtures::audio(1, 100)]);
    // As Unified's tools do it: the traks of both in one moov.
    let traks = |index: &Index, name: &str| {
        let file = index_file(index, name).unwrap();
        let at = file.windows(4).position(|name| name == b"trak").unwrap() - 4;
        let end = file.windows(4).position(|name| name == b"uuid").unwrap() - 4;
        (file[..at].to_vec(), file[at..end].to_vec())
    };
    let (mut file, video) = traks(&one, "v.mp4");
    let (_, audio) = traks(&two, "https://media.example.com/a.mp4");
    file.extend(video.iter().chain(&audio));
    let moov = (file.len() - 24) as u32;
    file[24..28].copy_from_slice(&moov.to_be_bytes());
    let mut references = references(&file).unwrap();
    let named = |name: &str| Location::Named(name.to_owned());
    let places = [named("v.mp4"), named("https://media.example.com/a.mp4")];
    assert_eq!(references.places(), places);
    for (n, index) in [&one, &two].into_iter().enumerate() {
        let found = references.index(n, 1 << 30).unwrap();
        assert_eq!(found.tracks.len(), 1);
        assert_same(&found.tracks[0], &index.tracks[0]);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}
