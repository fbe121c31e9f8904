//! The index of one media file: per track, compact tables of samples and where they lie.

mod ahead;
mod builder;
mod chunks;
mod column;
mod draft;
mod durations;
mod edit;
#[cfg(test)]
mod faults;
mod fingerprint;
mod fragment;
mod mark;
mod movie;
mod packed;
mod reader;
mod references;
mod samples;
mod sizes;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod track;

pub use builder::SamplesBuilder;
pub(crate) use edit::TIME_MAX;
pub(crate) use mark::Mark;
pub use packed::Packed;
pub use reader::{Indexer, index_bytes};
pub use references::References;
pub use samples::{Sample, Samples};

use crate::codec::Codec;
use crate::time::Time;

/// Everything needed to package one file, without reading it again for metadata.
#[derive(Debug, Clone)]
pub struct Index {
    /// Tracks that can be packaged, in file order. Never empty.
    pub tracks: Vec<Track>,
    /// Size of the file in bytes, as it was when indexed.
    pub file_len: u64,
    /// Hash of all metadata bytes (moov, moofs): changes when any sample's size, time or place does.
    pub fingerprint: u64,
    /// What tells the media from other media of the same length, where whoever brought the metadata
    /// knew it: an index MP4 keeps it, so that other media in the same place is noticed.
    pub media_state: Option<MediaState>,
    /// Things a player may stumble over, found while indexing, for people to read.
    pub notes: Vec<Note>,
}

/// What tells media from other media of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaState {
    /// A hash of some of its bytes.
    Bytes(u64),
    /// A hash of the entity tag that its storage gives it.
    Tag(u64),
}

/// One track of a file.
#[derive(Debug, Clone)]
pub struct Track {
    /// `track_ID` of the tkhd box.
    pub id: u32,
    /// Ticks a second of every time in this track; never zero.
    pub timescale: u32,
    /// ISO 639-2/T code or a BCP 47 tag from elng; `und` if not said.
    pub language: String,
    /// Name given by whoever made the file (`udta/name`, or hdlr when it is not a stock phrase).
    pub name: Option<String>,
    /// Whether the tkhd enabled flag is set: the file's idea of a default track.
    pub enabled: bool,
    /// What it is coded with, and how its init segment describes it.
    pub codec: Codec,
    /// The samples that the edit list keeps. Never empty. Their dts begin at 0.
    pub samples: Samples,
    /// Presentation time of a decode time of 0, in ticks, with the edit list resolved:
    /// a sample is shown at `dts + cts + origin`. Negative for priming, positive for a late start.
    pub origin: i64,
    /// Where the edit list ends what is shown, on the same timeline, in ticks; `None`: with the
    /// last sample. Segments show whole samples all the same.
    pub shown_until: Option<i64>,
    /// How the picture is turned (the matrix of tkhd), as phones write it.
    pub matrix: [i32; 9],
}

/// Something legal but unfortunate in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The track it concerns.
    pub track: u32,
    /// When in the track, in its own ticks, where it makes sense.
    pub at: Option<u64>,
    /// What it is, as one sentence.
    pub what: String,
}

impl Track {
    /// When sample `n` is shown, on the film's own timeline.
    pub fn shown(&self, n: u32) -> Time {
        let sample = self.samples.get(n);
        Time::new(
            sample.dts as i64 + i64::from(sample.cts) + self.origin,
            self.timescale,
        )
    }

    /// Length of all samples together.
    pub fn duration(&self) -> Time {
        Time::new(self.samples.end() as i64, self.timescale)
    }
}

impl Index {
    /// Bytes of memory that this index holds, for cache budgets.
    pub fn heap_bytes(&self) -> usize {
        let tracks = self.tracks.iter().map(|track| {
            size_of::<Track>() + track.samples.heap_bytes() + track.codec.heap_bytes()
        });
        size_of::<Index>() + tracks.sum::<usize>()
    }
}
