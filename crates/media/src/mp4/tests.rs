//! Tests that indexing a written file recovers the original tracks.

use super::{ProgressiveMp4, check_head_len, write_index_mp4};
use crate::bmff::dref::DataReference;
use crate::error::ErrorKind;
use crate::fixtures;
use crate::index::testing::{
    OffsetBase, ProgressiveLayout, SyntheticFragment, SyntheticMediaFile, SyntheticTrack,
    build_synthetic_progressive, mux_fragmented, unplaced_sample,
};
use crate::index::{
    ExternalReferences, Index, Indexer, Sample, Track, TrackRole, index_file_in_memory,
};
use crate::text::CaptionChannel;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// Reads the external references of an MP4 in memory.
pub(crate) fn read_references(file: &[u8]) -> Option<ExternalReferences> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.needed_range() {
        // Feeds at most 300 bytes at a time, as if they arrived from a network.
        let (start, end) = (range.start as usize, range.end as usize);
        indexer.feed(&file[start..end.min(start + 300)]).unwrap();
    }
    indexer.take_references()
}

fn collect_samples(track: &Track) -> Vec<Sample> {
    track.samples.iter_range(0..track.samples.len()).collect()
}

fn assert_same_track(a: &Track, b: &Track) {
    assert_eq!(collect_samples(a), collect_samples(b));
    assert_eq!(
        (a.id, a.timescale, a.is_enabled),
        (b.id, b.timescale, b.is_enabled)
    );
    assert_eq!((&a.language, &a.name), (&b.language, &b.name));
    assert_eq!(
        (a.presentation_offset, a.presentation_end),
        (b.presentation_offset, b.presentation_end)
    );
    assert_eq!(a.matrix, b.matrix);
    assert_eq!(a.roles, b.roles);
    assert_eq!(a.codec.sample_entry, b.codec.sample_entry);
    assert_eq!(a.codec.codec_string, b.codec.codec_string);
    assert_eq!(a.samples.is_all_sync(), b.samples.is_all_sync());
    assert_eq!(a.samples.heap_bytes(), b.samples.heap_bytes());
}

/// Writes an index MP4 of `index` and reads it back.
fn write_and_read_back(index: &Index) -> Index {
    let file = write_index_mp4(index, "../a film.mp4").unwrap();
    let mut references = read_references(&file).expect("an index MP4");
    assert_eq!(
        references.data_references(),
        [DataReference::External("../a film.mp4".into())]
    );
    assert!(references.recorded_media_len().is_some());
    references.build_index(0, index.file_len).unwrap()
}

fn assert_round_trip(index: &Index) {
    let back = write_and_read_back(index);
    assert_eq!(back.tracks.len(), index.tracks.len());
    index
        .tracks
        .iter()
        .zip(&back.tracks)
        .for_each(|(a, b)| assert_same_track(a, b));
    assert_eq!(back.file_len, index.file_len);
    assert_eq!(back.fingerprint, index.fingerprint);
    assert_eq!(back.notes, index.notes);
    assert_eq!(back.left_out, index.left_out);
    assert_eq!(back.caption_channels, index.caption_channels);
}

#[test]
fn an_index_mp4_keeps_roles_and_what_is_left_out() {
    let rows = |count| {
        (0..count)
            .map(|n| unplaced_sample(512, 0, 9 + n, n == 0))
            .collect()
    };
    let mut text = SyntheticTrack::audio(3, rows(4));
    text.handler = *b"text";
    let film = [
        SyntheticTrack::video(1, rows(9)),
        SyntheticTrack::audio(2, rows(5)),
        text,
    ];
    let file = build_synthetic_progressive(&film, &ProgressiveLayout::default()).to_bytes();
    let mut index = index_file_in_memory(&file).unwrap();
    assert_eq!(index.left_out.len(), 1);
    index.caption_channels = Some(vec![CaptionChannel::Cea608(1), CaptionChannel::Cea708(3)]);
    index.tracks[1].roles = vec![TrackRole::Commentary, TrackRole::AudioDescription];
    assert_round_trip(&index);
}

fn any_rows() -> impl Strategy<Value = Vec<Sample>> {
    let duration = prop_oneof![6 => Just(512u32), 1 => 0u32..2000];
    let composition_offset = prop_oneof![3 => Just(0i32), 1 => -2000i32..2000];
    let sync = prop_oneof![1 => Just(true), 3 => Just(false)];
    vec((duration, composition_offset, 0u32..600, sync), 1..90).prop_map(|rows| {
        let row = |(duration, composition_offset, size, sync)| {
            unplaced_sample(duration, composition_offset, size, sync)
        };
        rows.into_iter().map(row).collect()
    })
}

/// Generates edits, each with a duration in milliseconds and a media time. Some lists start with an
/// empty edit.
fn any_edits() -> impl Strategy<Value = Vec<(u32, i32)>> {
    let shown = (0u32..4000, 0i32..30_000);
    prop_oneof![
        2 => Just(Vec::new()),
        3 => shown.clone().prop_map(|edit| vec![edit]),
        1 => (1u32..3000, shown).prop_map(|(lead, edit)| vec![(lead, -1), edit]),
    ]
}

fn any_film() -> impl Strategy<Value = Vec<SyntheticTrack>> {
    let sound = vec(1u32..400, 1..90);
    (any_rows(), any_edits(), sound, any_edits()).prop_map(|(video, edits, sound, sound_edits)| {
        let sound = sound
            .iter()
            .map(|size| unplaced_sample(1024, 0, *size, true))
            .collect();
        let video = SyntheticTrack {
            edits,
            ..SyntheticTrack::video(7, video)
        };
        let sound = SyntheticTrack {
            edits: sound_edits,
            ..SyntheticTrack::audio(2, sound)
        };
        vec![video, sound]
    })
}

/// Returns the index of a muxed file; `None` if the edit lists of the file hide all samples.
fn index_muxed(muxed: &SyntheticMediaFile) -> Option<Index> {
    index_file_in_memory(&muxed.to_bytes()).ok()
}

fn build_fragments(counts: &[u32]) -> Vec<SyntheticFragment> {
    let one = |count: &u32| SyntheticFragment {
        offset_base: OffsetBase::Moof,
        has_explicit_fields: true,
        has_tfdt: true,
        stray_boxes: 0,
        trafs: vec![(0, vec![*count]), (1, vec![*count])],
    };
    counts.iter().chain([&1000]).map(one).collect()
}

proptest! {
    #[test]
    fn an_index_mp4_is_read_back_as_the_index(
        tracks in any_film(), chunks in vec((0usize..2, 1u32..9), 0..40), wide: bool
    ) {
        let layout = ProgressiveLayout { chunks, is_64_bit: wide, ..ProgressiveLayout::default() };
        if let Some(index) = index_muxed(&build_synthetic_progressive(&tracks, &layout)) {
            assert_round_trip(&index);
        }
    }

    #[test]
    fn fragments_are_written_as_tables(
        mut tracks in any_film(), counts in vec(1u32..30, 0..6), bases in any::<[u32; 2]>()
    ) {
        tracks.iter_mut().zip(bases).for_each(|(track, base)| track.first_dts = base.into());
        if let Some(index) = index_muxed(&mux_fragmented(&tracks, 0, &build_fragments(&counts))) {
            assert_round_trip(&index);
        }
    }

    #[test]
    fn a_progressive_file_holds_the_same_samples(
        tracks in any_film(), chunks in vec((0usize..2, 1u32..9), 0..40), two_files: bool
    ) {
        let layout = ProgressiveLayout { chunks, ..ProgressiveLayout::default() };
        let Some(index) = index_muxed(&build_synthetic_progressive(&tracks, &layout)) else { return Ok(()) };
        let index = Arc::new(index);
        let files = if two_files { vec![index.clone(), index.clone()] } else { vec![index.clone()] };
        let made = ProgressiveMp4::new(&files).unwrap();
        // Lists the media bytes of the new file in order, each as its offset in the source.
        let origin: Vec<u64> = made.source_ranges.iter().flat_map(|(_, range)| range.clone()).collect();
        prop_assert_eq!(made.len, (made.head.len() + origin.len()) as u64);
        let mut file = made.head.clone();
        file.resize(made.len as usize, 0);
        let back = index_file_in_memory(&file).unwrap();
        prop_assert_eq!(back.tracks.len(), index.tracks.len() * files.len());
        for (a, b) in index.tracks.iter().cycle().zip(&back.tracks) {
            // With negative composition offsets, the presentation of a track can end before the
            // first sample is decoded. Edit lists cannot express this, so the times of such a track
            // are not compared.
            if a.presentation_end.is_none_or(|until| until > a.presentation_offset.max(0)) {
                prop_assert_eq!((a.presentation_offset, a.presentation_end), (b.presentation_offset, b.presentation_end));
            }
            for (a, b) in collect_samples(a).iter().zip(collect_samples(b)) {
                prop_assert_eq!((a.dts, a.composition_offset, a.size, a.is_sync), (b.dts, b.composition_offset, b.size, b.is_sync));
                let at = b.offset as usize - made.head.len();
                let from = origin.get(at..at + b.size as usize).unwrap_or_default();
                prop_assert!(from.iter().copied().eq(a.offset..a.offset + u64::from(a.size)));
            }
        }
    }
}

/// Decodes hexadecimal text that contains white space.
fn decode_spaced_hex(hex: &str) -> Vec<u8> {
    let digits: String = hex.chars().filter(char::is_ascii_hexdigit).collect();
    crate::index::testing::decode_hex(&digits)
}

#[test]
fn every_codec_is_read_back() {
    use crate::codec::{Codec, sample_entry_vectors::*};
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
        let codec = Codec::from_sample_entry(&decode_spaced_hex(hex)).unwrap();
        let mut track = fixtures::build_video_track(1, 25, 100);
        if codec.audio().is_some() {
            track = fixtures::build_audio_track(1, 100);
        }
        track.codec = codec;
        track.language = "zh-Hant".into();
        track.name = Some("Director's cut".into());
        track.is_enabled = false;
        assert_round_trip(&fixtures::build_index_of_tracks(vec![track]));
    }
}

#[test]
fn times_beyond_every_movie_timescale_are_refused() {
    let late = |timescale: u32, origin: i64| {
        let mut track = fixtures::build_video_track(1, 25, 100);
        (track.timescale, track.presentation_offset) = (timescale, origin);
        track
    };
    // One movie timescale cannot express the delays of two tracks whose timescales are large
    // primes. The index MP4 can be written if only one of these tracks is delayed.
    let ok = fixtures::build_index_of_tracks(vec![late(4_294_967_291, 7), late(4_294_967_279, -7)]);
    assert_round_trip(&ok);
    let both =
        fixtures::build_index_of_tracks(vec![late(4_294_967_291, 7), late(4_294_967_279, 7)]);
    assert!(write_index_mp4(&both, "x").is_err());
    let never = fixtures::build_index_of_tracks(vec![late(1, 1 << 59), late(4_294_967_279, 7)]);
    assert!(write_index_mp4(&never, "x").is_err());
    assert!(
        ProgressiveMp4::new(&[both]).is_ok(),
        "a tick off does not matter there"
    );
}

#[test]
fn media_of_another_length_is_refused() {
    let index = fixtures::build_index_of_tracks(vec![fixtures::build_video_track(1, 25, 100)]);
    let file = write_index_mp4(&index, "film.mp4").unwrap();
    let mut references = read_references(&file).unwrap();
    let error = references.build_index(0, index.file_len - 1).unwrap_err();
    assert!(error.message.contains("index it again"), "{error}");
}

#[test]
fn without_a_source_record_samples_must_fit_the_media() {
    let index = fixtures::build_index_of_tracks(vec![fixtures::build_video_track(1, 25, 100)]);
    let file = write_index_mp4(&index, "film.mp4").unwrap();
    let id = file.windows(4).position(|name| name == b"uuid").unwrap();
    let mut other = file.clone();
    other[id..id + 4].copy_from_slice(b"free");
    let mut references = read_references(&other).unwrap();
    assert!(references.recorded_media_len().is_none());
    let whole = references.build_index(0, index.file_len).unwrap();
    assert_same_track(&whole.tracks[0], &index.tracks[0]);
    assert_ne!(whole.fingerprint, index.fingerprint);
    let error = references.build_index(0, 1000).unwrap_err();
    assert!(
        error.message.contains("the file ends at byte 1000"),
        "{error}"
    );
}

#[test]
fn a_file_of_several_locations_gives_an_index_for_each() {
    let one = fixtures::build_index_of_tracks(vec![fixtures::build_video_track(1, 25, 100)]);
    let two = fixtures::build_index_of_tracks(vec![fixtures::build_audio_track(1, 100)]);
    // Unified Streaming's tools also put the `trak` boxes of two files into one `moov`.
    let traks = |index: &Index, name: &str| {
        let file = write_index_mp4(index, name).unwrap();
        let at = file.windows(4).position(|name| name == b"trak").unwrap() - 4;
        let end = file.windows(4).position(|name| name == b"uuid").unwrap() - 4;
        (file[..at].to_vec(), file[at..end].to_vec())
    };
    let (mut file, video) = traks(&one, "v.mp4");
    let (_, audio) = traks(&two, "https://media.example.com/a.mp4");
    file.extend(video.iter().chain(&audio));
    let moov = (file.len() - 24) as u32;
    file[24..28].copy_from_slice(&moov.to_be_bytes());
    let mut references = read_references(&file).unwrap();
    let named = |name: &str| DataReference::External(name.to_owned());
    let places = [named("v.mp4"), named("https://media.example.com/a.mp4")];
    assert_eq!(references.data_references(), places);
    for (n, index) in [&one, &two].into_iter().enumerate() {
        let found = references.build_index(n, 1 << 30).unwrap();
        assert_eq!(found.tracks.len(), 1);
        assert_same_track(&found.tracks[0], &index.tracks[0]);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

#[test]
fn tables_over_4_gib_are_refused() {
    assert_eq!(check_head_len(u32::MAX.into()), Ok(()));
    let error = check_head_len(u64::from(u32::MAX) + 1).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
}
