//! Tracks and indexes made by hand, for tests of what comes after the index.

use crate::codec::{Audio, AudioCoding, Cicp, Codec, Media, Nal, Video};
use crate::index::{Index, Sample, SamplesBuilder, Track};
use std::sync::Arc;

/// A sample as tests write it: (duration, cts, size, sync). Offsets are made up: contiguous.
pub(crate) type Row = (u32, i32, u32, bool);

pub(crate) fn avc(width: u32, height: u32) -> Codec {
    Codec {
        fourcc: *b"avc1",
        sample_entry: b"\0\0\0\x18avc1\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0".to_vec(),
        string: "avc1.64001F".into(),
        supplemental: None,
        media: Media::Video(Video {
            width,
            height,
            sar: (1, 1),
            color: Some(Cicp {
                primaries: 1,
                transfer: 1,
                matrix: 1,
                full_range: false,
            }),
            nal: Some(Nal {
                hevc: false,
                length_bytes: 4,
                parameter_sets: vec![vec![0x67], vec![0x68]],
            }),
        }),
    }
}

pub(crate) fn aac(channels: u32) -> Codec {
    Codec {
        fourcc: *b"mp4a",
        sample_entry: b"\0\0\0\x10mp4a\0\0\0\0\0\0\0\x01".to_vec(),
        string: "mp4a.40.2".into(),
        supplemental: None,
        media: Media::Audio(Audio {
            coding: AudioCoding::Aac,
            sample_rate: 48_000,
            channels,
            hls_channels: channels.to_string(),
            dash_channels: (
                "urn:mpeg:mpegB:cicp:ChannelConfiguration",
                channels.to_string(),
            ),
            aac_config: vec![0x11, 0x90],
        }),
    }
}

pub(crate) fn track(codec: Codec, timescale: u32, origin: i64, rows: &[Row]) -> Track {
    let mut samples = SamplesBuilder::default();
    let mut offset = 48;
    for (duration, cts, size, sync) in rows.iter().copied() {
        samples.push(Sample {
            dts: 0,
            duration,
            cts,
            size,
            sync,
            offset,
        });
        offset += u64::from(size);
    }
    Track {
        id: 1,
        timescale,
        language: "und".into(),
        name: None,
        enabled: true,
        codec,
        samples: samples.finish(),
        origin,
    }
}

/// Video of 25 pictures a second with a key frame every `gop` of them, B-frames in between, and
/// an edit list that takes their delay back.
pub(crate) fn video(seconds: u32, gop: u32, size: u32) -> Track {
    let rows: Vec<Row> = (0..seconds * 25)
        .map(|n| {
            let cts = [2, 5, 2, 0, 1][(n % gop % 5) as usize] * 512;
            let key = n % gop == 0;
            (512, cts, if key { size * 8 } else { size + n % 7 }, key)
        })
        .collect();
    track(avc(1280, 720), 12_800, -1024, &rows)
}

/// AAC at 48 kHz with the usual 1024 ticks of priming.
pub(crate) fn audio(seconds: u32, size: u32) -> Track {
    let rows: Vec<Row> = (0..seconds * 48_000 / 1024 + 1)
        .map(|n| (1024, 0, size + n % 3, true))
        .collect();
    track(aac(2), 48_000, -1024, &rows)
}

pub(crate) fn index(tracks: Vec<Track>) -> Arc<Index> {
    let fingerprint = tracks.iter().fold(7, |sum, track| {
        sum * 31 + track.samples.bytes(0..u32::MAX) + track.samples.end()
    });
    Arc::new(Index {
        tracks,
        file_len: 1 << 30,
        fingerprint,
        notes: Vec::new(),
    })
}
