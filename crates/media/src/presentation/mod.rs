//! Indexes plus rules become renditions on one grid of segment boundaries.

mod bandwidth;
mod build;
mod grid;
mod lookup;
mod names;
#[cfg(test)]
mod properties;
mod shift;
#[cfg(test)]
mod tests;
mod tracks;

pub use bandwidth::Bandwidth;

use crate::error::Result;
use crate::index::{Index, Track};
use crate::time::Time;
use std::sync::Arc;

/// How a title is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Wished segment length, in milliseconds. Zero is taken as one.
    pub segment_ms: u32,
}

/// What a title looks like to players. Built once for a title and a set of rules, then only read.
#[derive(Debug, Clone)]
pub struct Presentation {
    /// The title's files, in the order of their names.
    pub files: Vec<Arc<Index>>,
    /// Video first, in the order manifests list them; then audio. Never empty.
    pub renditions: Vec<Rendition>,
    /// Where the film's own time zero lies on the served timeline: tracks with priming are shown,
    /// and reordered pictures decoded, before it. DASH says it as presentationTimeOffset; exact
    /// in every timescale.
    pub zero: Time,
    /// From `zero` to the end of the longest rendition.
    pub duration: Time,
    /// HLS `EXT-X-TARGETDURATION` of all playlists, in seconds: the longest segment, rounded.
    pub target_duration: u32,
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
    /// Served time of the track's sample 0, in ticks; later ones add their durations. Segments
    /// are named and listed by this time of their first sample, which is when it is shown; it is
    /// decoded `delay` earlier. Where leading samples are not served (see `cuts`) it may be
    /// negative.
    pub start: i64,
    /// Added to a sample's `cts`: from its time to when it is shown. 0 for the first sample
    /// then; negative for B-frames.
    pub cts_shift: i32,
    /// How long before its time each sample is decoded, so that none is shown before it is
    /// decoded, in ticks: the deepest reordering of the track.
    pub delay: u32,
    /// First sample of each segment, and the number of samples at the end: segment `n` holds
    /// samples `cuts[n]..cuts[n + 1]`, never none. Video before its first sync sample cannot be
    /// decoded and is left out, so `cuts[0]` need not be 0.
    pub cuts: Vec<u32>,
    /// Renditions of one group switch seamlessly: their segments begin at the same times.
    pub group: usize,
    /// Measured over its CMAF segments.
    pub bandwidth: Bandwidth,
}

impl Rendition {
    /// How many segments.
    pub fn segments(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }

    /// Ticks from a sample's served decode time to when it is shown; never negative for those of
    /// the track.
    pub(crate) fn served_cts(&self, cts: i32) -> i64 {
        i64::from(cts) + i64::from(self.cts_shift) + i64::from(self.delay)
    }
}

impl Presentation {
    /// Cuts the title that `files` are the renditions of.
    ///
    /// Video is listed with the rendition nearest to 2 Mbit/s first, since players begin with
    /// the first one, then from the highest bitrate down; audio in the order of the files, each
    /// track once, even if every file carries a copy.
    ///
    /// # Errors
    /// `Malformed` when lengths differ by more than 2 s and 5 % (the files are no renditions of
    /// one title) or a video track has no sync sample; `Empty` when nothing lasts any time;
    /// `TooLarge` past the bounds of `shift::LIMIT_HOURS` and `build::SEGMENT_SAMPLES_MAX`.
    pub fn new(files: Vec<Arc<Index>>, rules: &Rules) -> Result<Presentation> {
        build::presentation(files, rules)
    }

    /// The track behind a rendition.
    pub fn track(&self, rendition: &Rendition) -> &Track {
        &self.files[rendition.file].tracks[rendition.track]
    }

    /// Names this exact set of segments in URLs, such as `6000-0123456789abcdef`.
    pub fn set_name(&self) -> String {
        format!("{}-{:016x}", self.segment_ms, self.version)
    }

    /// The rendition of this name, and its place in [`Presentation::renditions`].
    pub fn rendition(&self, name: &str) -> Option<(usize, &Rendition)> {
        let mut renditions = self.renditions.iter().enumerate();
        renditions.find(|(_, rendition)| rendition.name == name)
    }

    /// The renditions that show pictures, in order.
    pub fn videos(&self) -> impl Iterator<Item = &Rendition> {
        let is_video = |r: &&Rendition| self.track(r).codec.video().is_some();
        self.renditions.iter().filter(is_video)
    }

    /// The renditions that sound, in order.
    pub fn audios(&self) -> impl Iterator<Item = &Rendition> {
        let is_audio = |r: &&Rendition| self.track(r).codec.audio().is_some();
        self.renditions.iter().filter(is_audio)
    }
}
