//! Indexes plus rules become renditions on one grid of segment boundaries.

use crate::index::{Index, Track};
use crate::time::Time;
use std::sync::Arc;

/// What a title looks like to players. Built once for a title and a set of rules, then only read.
#[derive(Debug, Clone)]
pub struct Presentation {
    /// The title's files, in the order of their names.
    pub files: Vec<Arc<Index>>,
    /// Video first, in the order manifests list them; then audio. Never empty.
    pub renditions: Vec<Rendition>,
    /// Where the film's own time zero lies on the served timeline: tracks with priming before
    /// zero begin earlier. DASH says it as presentationTimeOffset; exact in every timescale.
    pub zero: Time,
    /// From `zero` to the end of the longest rendition.
    pub duration: Time,
    /// Wished segment length, in milliseconds.
    pub segment_ms: u32,
    /// Names this exact set of segments: hash of the files' fingerprints and the rules.
    pub version: u64,
}

/// One track as it is served.
#[derive(Debug, Clone)]
pub struct Rendition {
    /// Its name in URLs and its Representation@id, after Unified Origin: `video=4500000`,
    /// `audio_eng=128000`, `audio_eng_1=128000`. Unique in the presentation.
    pub name: String,
    /// Which of [`Presentation::files`].
    pub file: usize,
    /// Which of its tracks (a position, not a track_ID).
    pub track: usize,
    /// Served decode time of the first sample, in ticks; later ones add their durations.
    pub start: i64,
    /// Added to a sample's `cts`, so that the first sample is shown when it is decoded.
    pub cts_shift: i32,
    /// First sample of each segment, and the number of samples at the end: segment `n` holds
    /// samples `cuts[n]..cuts[n + 1]`, never none.
    pub cuts: Vec<u32>,
    /// Renditions of one group switch seamlessly: their segments begin at the same times.
    pub group: usize,
    /// Measured over its CMAF segments.
    pub bandwidth: Bandwidth,
}

/// Bits a second, over the segments as served (headers included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// The largest of any segment.
    pub peak: u64,
    /// All bytes over all time.
    pub average: u64,
}

impl Rendition {
    /// How many segments.
    pub fn segments(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }
}

impl Presentation {
    /// The track behind a rendition.
    pub fn track(&self, rendition: &Rendition) -> &Track {
        &self.files[rendition.file].tracks[rendition.track]
    }
}
