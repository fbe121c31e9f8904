//! Generated tracks and indexes, for tests of the modules that use an index.

use crate::codec::{CicpColor, Codec, TrackFormat, sample_entry_vectors};
use crate::index::{Index, Sample, SampleTableBuilder, Track};
use proptest::prelude::*;
use std::sync::Arc;

/// A sample as (duration, composition offset, size, is sync). The bytes of the samples are
/// contiguous.
pub(crate) type FixtureSample = (u32, i32, u32, bool);

fn parse_hex_sample_entry(hex: &str) -> Codec {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal")
    };
    let entry: Vec<u8> = digits.chunks(2).map(byte).collect();
    Codec::from_sample_entry(&entry).expect("a sample entry as FFmpeg writes it")
}

/// Returns an AVC codec with this picture size and BT.709 colour.
pub(crate) fn build_avc_test_codec(width: u32, height: u32) -> Codec {
    let mut codec = parse_hex_sample_entry(sample_entry_vectors::AVC);
    if let TrackFormat::Video(video) = &mut codec.format {
        (video.width, video.height) = (width, height);
        video.color = Some(CicpColor {
            primaries: 1,
            transfer: 1,
            matrix: 1,
            full_range: false,
        });
    }
    codec
}

/// Returns an HEVC codec with PQ and BT.2020 colour.
pub(crate) fn build_hevc_pq_test_codec() -> Codec {
    parse_hex_sample_entry(sample_entry_vectors::HVC1_PQ)
}

pub(crate) fn build_vp9_test_codec() -> Codec {
    parse_hex_sample_entry(sample_entry_vectors::VP9)
}

pub(crate) fn build_aac_test_codec() -> Codec {
    parse_hex_sample_entry(sample_entry_vectors::AAC)
}

pub(crate) fn build_ac3_test_codec() -> Codec {
    parse_hex_sample_entry(sample_entry_vectors::AC3)
}

pub(crate) fn build_opus_test_codec() -> Codec {
    parse_hex_sample_entry(sample_entry_vectors::OPUS)
}

pub(crate) fn build_track(
    codec: Codec,
    timescale: u32,
    origin: i64,
    rows: &[FixtureSample],
) -> Track {
    let mut samples = SampleTableBuilder::default();
    let mut offset = 48;
    for (duration, composition_offset, size, sync) in rows.iter().copied() {
        samples.push(Sample {
            dts: 0,
            duration,
            composition_offset,
            size,
            is_sync: sync,
            offset,
        });
        offset += u64::from(size);
    }
    Track {
        id: 1,
        timescale,
        language: "und".into(),
        name: None,
        is_enabled: true,
        roles: Vec::new(),
        codec,
        samples: samples.finish(),
        presentation_offset: origin,
        presentation_end: None,
        protection: None,
        subsamples: None,
        matrix: crate::bmff::tkhd::IDENTITY_MATRIX,
    }
}

/// Builds a video track with 25 frames per second, a key frame every `gop` frames, and B-frames
/// between key frames. An edit list compensates for the delay of the B-frames.
pub(crate) fn build_video_track(seconds: u32, gop: u32, size: u32) -> Track {
    let rows: Vec<FixtureSample> = (0..seconds * 25)
        .map(|n| {
            let composition_offset = [2, 5, 2, 0, 1][(n % gop % 5) as usize] * 512;
            let key = n % gop == 0;
            (
                512,
                composition_offset,
                if key { size * 8 } else { size + n % 7 },
                key,
            )
        })
        .collect();
    build_track(build_avc_test_codec(1280, 720), 12_800, -1024, &rows)
}

/// Builds an AAC track at 48 kHz, with the usual 1024 ticks of priming.
pub(crate) fn build_audio_track(seconds: u32, size: u32) -> Track {
    let rows: Vec<FixtureSample> = (0..seconds * 48_000 / 1024 + 1)
        .map(|n| (1024, 0, size + n % 3, true))
        .collect();
    build_track(build_aac_test_codec(), 48_000, -1024, &rows)
}

pub(crate) fn build_index_of_tracks(tracks: Vec<Track>) -> Arc<Index> {
    let fingerprint = tracks.iter().fold(7_u64, |sum, track| {
        let bytes_and_ticks =
            track.samples.byte_count(0..u32::MAX) + track.samples.total_duration();
        sum.wrapping_mul(31).wrapping_add(bytes_and_ticks)
    });
    Arc::new(Index {
        tracks,
        text_tracks: Vec::new(),
        file_len: 1 << 30,
        fingerprint,
        media_version: None,
        notes: Vec::new(),
        left_out: Vec::new(),
        caption_channels: None,
    })
}

prop_compose! {
    /// Generates valid video tracks. Durations are constant or varying, and may be zero. Frames may
    /// be reordered, and every frame may be a key frame. Up to two samples may precede the first
    /// key frame. Such samples cannot be decoded.
    pub(crate) fn arbitrary_video_track()(
        timescale in prop_oneof![Just(12_800u32), Just(90_000), Just(24_000), Just(1000), Just(10_000_000)],
        frame in prop_oneof![Just((1, 25)), Just((1001, 30_000)), Just((1, 60))],
        varying in prop_oneof![3 => Just(0u32), 1 => Just(3u32)],
        origin in -5000i64..5000,
        leading in 0usize..3,
        rows in proptest::collection::vec((0u32..=3, -3i32..6, 0u32..900, prop_oneof![7 => Just(false), 1 => Just(true)]), 4..250),
    ) -> Track {
        let tick = (u64::from(timescale) * frame.0 / frame.1) as u32;
        let rows: Vec<FixtureSample> = rows.iter().enumerate().map(|(n, (duration, composition_offset, size, sync))| {
            let duration = if varying > 0 { tick * duration } else { tick };
            let last = n + 1 == rows.len();
            (duration + u32::from(last), composition_offset * tick as i32, *size, *sync || n == leading)
        }).collect();
        build_track(build_avc_test_codec(640, 360), timescale, origin, &rows)
    }
}

prop_compose! {
    /// Generates valid audio tracks.
    pub(crate) fn arbitrary_audio_track()(
        timescale in prop_oneof![Just(48_000u32), Just(44_100), Just(90_000)],
        duration in prop_oneof![Just(1024u32), Just(1536), Just(960)],
        origin in -3000i64..200_000,
        language in prop_oneof![Just("und"), Just("eng"), Just("fr"), Just("\"x")],
        sizes in proptest::collection::vec(0u32..900, 1..400),
    ) -> Track {
        let rows: Vec<FixtureSample> = sizes.iter().map(|size| (duration, 0, *size, true)).collect();
        let mut track = build_track(build_aac_test_codec(), timescale, origin, &rows);
        track.language = language.into();
        track
    }
}

/// Generates valid titles, with a few video and audio tracks in one file, or in one file per track.
/// All tracks are short, so their durations are similar enough for one title. The edit lists of
/// some tracks hide samples at the end.
pub(crate) fn arbitrary_title() -> impl Strategy<Value = Vec<Arc<Index>>> {
    let permille = prop_oneof![3 => Just(1000u64), 1 => 0u64..1000, 1 => Just(0)];
    let shown = proptest::collection::vec(permille, 8);
    let videos = proptest::collection::vec(arbitrary_video_track(), 0..4);
    let audios = proptest::collection::vec(arbitrary_audio_track(), 0..3);
    (videos, audios, any::<bool>(), shown)
        .prop_filter("at least one track", |(v, a, ..)| {
            !v.is_empty() || !a.is_empty()
        })
        .prop_map(|(videos, audios, together, shown)| {
            let mut tracks: Vec<Track> = videos.into_iter().chain(audios).collect();
            for (track, permille) in tracks.iter_mut().zip(shown) {
                let shown = (track.samples.total_duration() * permille / 1000) as i64;
                let end = track.presentation_offset + shown;
                track.presentation_end = (permille < 1000).then_some(end);
            }
            match together {
                true => vec![build_index_of_tracks(tracks)],
                false => tracks
                    .into_iter()
                    .map(|track| build_index_of_tracks(vec![track]))
                    .collect(),
            }
        })
}
