//! A muxer for tests. It writes sample tables as MP4 files in every layout that the indexer reads.
//!
//! The muxer shares no code with the indexer except the functions that write box headers.

mod fragmented;
mod progressive;

pub use fragmented::{OffsetBase, SyntheticFragment, mux_fragmented};
pub use progressive::{ProgressiveLayout, build_synthetic_progressive};

use crate::index::Sample;
use std::ops::Range;

/// A track to write. `dts` and `offset` of its samples are ignored.
#[derive(Debug, Clone)]
pub struct SyntheticTrack {
    pub id: u32,
    pub is_video: bool,
    pub timescale: u32,
    pub rows: Vec<Sample>,
    /// Decode time of the first sample, in ticks. Used only for samples in fragments.
    pub first_dts: u64,
    /// Edits, as (duration in milliseconds, media time in ticks).
    pub edits: Vec<(u32, i32)>,
    pub entries: Vec<Vec<u8>>,
    /// Number of the sample entry that all samples use, counted from 1.
    pub description_index: u32,
    pub handler: [u8; 4],
}

impl SyntheticTrack {
    pub fn video(id: u32, rows: Vec<Sample>) -> SyntheticTrack {
        SyntheticTrack {
            id,
            is_video: true,
            timescale: 12_800,
            rows,
            first_dts: 0,
            edits: Vec::new(),
            entries: vec![decode_hex(AVC)],
            description_index: 1,
            handler: *b"vide",
        }
    }

    pub fn audio(id: u32, rows: Vec<Sample>) -> SyntheticTrack {
        SyntheticTrack {
            is_video: false,
            timescale: 48_000,
            entries: vec![decode_hex(AAC)],
            handler: *b"soun",
            ..SyntheticTrack::video(id, rows)
        }
    }
}

/// Creates a sample whose decode time and file offset are 0.
pub fn unplaced_sample(duration: u32, composition_offset: i32, size: u32, sync: bool) -> Sample {
    let (dts, offset) = (0, 0);
    Sample {
        dts,
        duration,
        composition_offset,
        size,
        is_sync: sync,
        offset,
    }
}

/// A file whose media bytes are all zero and are therefore not stored.
#[derive(Debug, Clone)]
pub struct SyntheticMediaFile {
    pub bytes_before_media: Vec<u8>,
    pub media_len: u64,
    pub bytes_after_media: Vec<u8>,
    /// For each track, the expected samples with their times and offsets.
    pub expected_samples: Vec<Vec<Sample>>,
}

impl SyntheticMediaFile {
    pub fn len(&self) -> u64 {
        self.bytes_before_media.len() as u64 + self.media_len + self.bytes_after_media.len() as u64
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.read_range(0..self.len())
    }

    pub fn read_range(&self, range: Range<u64>) -> Vec<u8> {
        let (start, after) = (
            self.bytes_before_media.len() as u64,
            self.bytes_before_media.len() as u64 + self.media_len,
        );
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        let part = |at: u64| at.min(start) as usize;
        out.extend_from_slice(&self.bytes_before_media[part(range.start)..part(range.end)]);
        let zeros = range.end.clamp(start, after) - range.start.clamp(start, after);
        out.resize(out.len() + zeros as usize, 0);
        let part = |at: u64| at.saturating_sub(after) as usize;
        out.extend_from_slice(&self.bytes_after_media[part(range.start)..part(range.end)]);
        out
    }
}

pub fn write_words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// Decodes hexadecimal text.
pub fn decode_hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Sample entry of High 4:4:4 video, 32 by 32 pixels, written by FFmpeg.
pub const AVC: &str = "000000ac61766331000000000000000100000000000000000000000000000000002000200048\
    000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff\
    000000326176634301f4000affe1001667f4000a919d92d80880000003008000000a0789129c01000568ce0f1920fff8\
    f800000000107061737000000001000000010000001462747274000000000000727a0000727a";

/// Sample entry of stereo AAC, 48 kHz, written by FFmpeg.
pub const AAC: &str = "0000006e6d703461000000000000000100000000000000000002001000000000bb8000000000\
    0036657364730000000003808080250001000480808017401500000000011cc700011cc70580808005118856e5000680\
    8080010200000014627472740000000000011cc700011cc7";
