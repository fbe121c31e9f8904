//! A muxer for tests: sample tables in, MP4 files out, in every layout that the indexer reads.
//! It shares nothing with the indexer but the writing of box headers.

mod fragmented;
mod progressive;

pub use fragmented::{Base, Fragment, fragmented};
pub use progressive::{Layout, progressive};

use crate::index::Sample;
use std::ops::Range;

/// A track to write. Of its rows, `dts` and `offset` are not looked at.
#[derive(Debug, Clone)]
pub struct MuxTrack {
    pub id: u32,
    pub video: bool,
    pub timescale: u32,
    pub rows: Vec<Sample>,
    /// Decode time of the first row, where it is in fragments.
    pub base: u64,
    /// Duration in milliseconds, media time.
    pub edits: Vec<(u32, i32)>,
    pub entries: Vec<Vec<u8>>,
    /// Sample entry that all rows use, from 1.
    pub description: u32,
    pub handler: [u8; 4],
}

impl MuxTrack {
    pub fn video(id: u32, rows: Vec<Sample>) -> MuxTrack {
        MuxTrack {
            id,
            video: true,
            timescale: 12_800,
            rows,
            base: 0,
            edits: Vec::new(),
            entries: vec![hex(AVC)],
            description: 1,
            handler: *b"vide",
        }
    }

    pub fn audio(id: u32, rows: Vec<Sample>) -> MuxTrack {
        MuxTrack {
            video: false,
            timescale: 48_000,
            entries: vec![hex(AAC)],
            handler: *b"soun",
            ..MuxTrack::video(id, rows)
        }
    }
}

/// A row: duration, composition offset, size, sync.
pub fn row(duration: u32, cts: i32, size: u32, sync: bool) -> Sample {
    let (dts, offset) = (0, 0);
    Sample {
        dts,
        duration,
        cts,
        size,
        sync,
        offset,
    }
}

/// A file whose media bytes are all zero, and so need not be kept.
#[derive(Debug, Clone)]
pub struct Muxed {
    pub before: Vec<u8>,
    pub media: u64,
    pub after: Vec<u8>,
    /// Per track, the rows with their times and places.
    pub expected: Vec<Vec<Sample>>,
}

impl Muxed {
    pub fn len(&self) -> u64 {
        self.before.len() as u64 + self.media + self.after.len() as u64
    }

    pub fn file(&self) -> Vec<u8> {
        self.read(0..self.len())
    }

    pub fn read(&self, range: Range<u64>) -> Vec<u8> {
        let (start, after) = (
            self.before.len() as u64,
            self.before.len() as u64 + self.media,
        );
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        let part = |at: u64| at.min(start) as usize;
        out.extend_from_slice(&self.before[part(range.start)..part(range.end)]);
        let zeros = range.end.clamp(start, after) - range.start.clamp(start, after);
        out.resize(out.len() + zeros as usize, 0);
        let part = |at: u64| at.saturating_sub(after) as usize;
        out.extend_from_slice(&self.after[part(range.start)..part(range.end)]);
        out
    }
}

pub fn words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// Bytes written as hexadecimal.
pub fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Sample entry of High 4:4:4 video, 32 by 32, as FFmpeg writes it.
pub const AVC: &str = "000000ac61766331000000000000000100000000000000000000000000000000002000200048\
    000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff\
    000000326176634301f4000affe1001667f4000a919d92d80880000003008000000a0789129c01000568ce0f1920fff8\
    f800000000107061737000000001000000010000001462747274000000000000727a0000727a";

/// Sample entry of stereo AAC, 48 kHz, as FFmpeg writes it.
pub const AAC: &str = "0000006e6d703461000000000000000100000000000000000002001000000000bb8000000000\
    0036657364730000000003808080250001000480808017401500000000011cc700011cc70580808005118856e5000680\
    8080010200000014627472740000000000011cc700011cc7";
