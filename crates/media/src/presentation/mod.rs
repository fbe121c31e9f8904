//! Presentations, which are built from indexes and rules. The renditions of a presentation have
//! common segment boundaries if their key frames allow it.

mod bandwidth;
mod build;
mod frame_rate;
mod lookup;
mod manifest_rules;
#[cfg(test)]
mod property_tests;
mod rendition_names;
mod sample_times;
mod segment_grid;
mod served_tracks;
mod still_tracks;
#[cfg(test)]
mod tests;
mod timeline_shift;
#[cfg(test)]
mod track_tests;

pub use bandwidth::Bandwidth;
pub(crate) use frame_rate::reduce_fraction;
pub use manifest_rules::{CmafHlsTextForm, DashTextForm, ManifestOptions};

use crate::index::{Index, LeftOutTrack, Track};
use crate::protection::{TitleSignaling, TrackSignaling};
use crate::text::{TextBandwidths, TextSet};
use crate::time::Time;
use std::sync::Arc;

/// Rules for packaging a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackagingRules {
    /// Target segment duration in milliseconds. Zero is treated as one.
    pub segment_duration_ms: u32,
}

/// A title as players see it. A presentation is built once from a title and its rules, and
/// afterwards only read.
#[derive(Debug, Clone)]
pub struct Presentation {
    /// The title's files, in the order of their names.
    pub files: Vec<Arc<Index>>,
    /// Video in manifest order, then audio. Never empty.
    pub renditions: Vec<Rendition>,
    /// Position of the film's own time zero on the served timeline.
    ///
    /// Priming and reordered pictures are decoded before this time. MPDs contain this time as
    /// presentationTimeOffset. This time is a whole number of ticks in every timescale.
    pub presentation_time_offset: Time,
    /// Time from `presentation_time_offset` to the end of the longest rendition.
    pub duration: Time,
    /// HLS `EXT-X-TARGETDURATION` of all playlists, in seconds. This is the longest listed duration
    /// of a segment or key frame, rounded to whole seconds (RFC 8216, 4.3.3.1).
    pub target_duration_s: u32,
    /// Target segment duration in milliseconds.
    pub segment_duration_ms: u32,
    /// Hash of the files' fingerprints and the rules. It identifies this set of segments.
    pub version_hash: u64,
    /// Tracks and other parts that are not served, each with the index of its file in
    /// [`Presentation::files`].
    pub left_out: Vec<(usize, LeftOutTrack)>,
    /// Declarations for manifests. The caller sets these declarations. They do not change segments.
    pub manifest_rules: ManifestOptions,
    /// Subtitles and captions, set by [`Presentation::with_text`]. Text does not change
    /// `version_hash`.
    pub text: Arc<TextSet>,
    pub(crate) text_bandwidths: TextBandwidths,
    /// Common Encryption of the renditions, if any.
    pub protection: Option<Arc<TitleSignaling>>,
}

/// One track as it is served.
#[derive(Debug, Clone)]
pub struct Rendition {
    /// Name in URLs and in Representation@id, unique in the presentation. The names have the form
    /// of Unified Origin's names, for example `video=4500000`, `audio_eng=128000` and
    /// `audio_eng_1=128000`.
    pub name: String,
    /// Index into [`Presentation::files`].
    pub file_index: usize,
    /// Index into the tracks of the file (not `track_ID`).
    pub track_index: usize,
    /// Served time of sample 0, in ticks. The served time of a later sample is this time plus the
    /// durations of the samples before it.
    ///
    /// A sample is decoded `decode_delay` before its served time. Its presentation time is its
    /// served time plus `composition_shift` plus its composition offset. The served time of the
    /// first served sample is the earliest presentation time of the rendition. `start_ticks` may be
    /// negative if the first samples are not served (see `segment_cuts`).
    pub start_ticks: i64,
    /// Ticks added to the composition offset of each sample. The sum is 0 for the first served
    /// sample, unless leading pictures are presented before this sample. The sum may be negative
    /// for B-frames.
    pub composition_shift: i32,
    /// Ticks from the decode time of a sample to its served time. This is the longest reordering
    /// delay of the track, so that no sample is presented before it is decoded.
    pub decode_delay: u32,
    /// First sample of each segment, followed by the total number of samples.
    ///
    /// Segment `n` contains samples `segment_cuts[n]..segment_cuts[n + 1]` and is never empty.
    /// Samples before the first sync sample cannot be decoded and are left out, so the first cut
    /// may be above 0.
    pub segment_cuts: Vec<u32>,
    /// Earliest presentation time of each segment, in ticks of the served timeline, followed by the
    /// end of the last presented sample. The times rise strictly. URLs and manifests identify
    /// segments by these times.
    pub segment_starts: Vec<u64>,
    /// Whether any segment contains leading pictures. Leading pictures are decoded after the first
    /// sample of a segment, but presented before this sample. In open GOPs, leading pictures also
    /// depend on the previous segment.
    pub has_leading_pictures: bool,
    /// Maximum frame rate in frames per second, as a fraction in lowest terms; 0/1 for audio.
    pub frame_rate: (u64, u64),
    /// Number of the switching group. Players can switch seamlessly between renditions of one
    /// group, because their segments start at the same times.
    pub switching_group: usize,
    /// Bandwidth of the CMAF segments.
    pub bandwidth: Bandwidth,
}

impl Rendition {
    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.segment_cuts.len().saturating_sub(1)
    }

    /// Returns the ticks from a sample's served decode time to its presentation; never negative for
    /// samples of the track.
    pub(crate) fn served_composition_offset(&self, composition_offset: i32) -> i64 {
        i64::from(composition_offset)
            + i64::from(self.composition_shift)
            + i64::from(self.decode_delay)
    }
}

impl Presentation {
    /// Returns the track of a rendition.
    pub fn track(&self, rendition: &Rendition) -> &Track {
        &self.files[rendition.file_index].tracks[rendition.track_index]
    }

    /// Returns the protection of a rendition; `None` if the rendition is not encrypted.
    pub fn track_signaling(&self, rendition: &Rendition) -> Option<&TrackSignaling> {
        let protection = self.protection.as_ref()?;
        let (at, _) = self.find_rendition(&rendition.name)?;
        protection.tracks.get(at)?.as_ref()
    }

    /// Returns the name of this segment set in URLs, such as `6000-0123456789abcdef`.
    pub fn segment_folder_name(&self) -> String {
        format!("{}-{:016x}", self.segment_duration_ms, self.version_hash)
    }

    /// Finds a rendition by name, with its index in [`Presentation::renditions`].
    pub fn find_rendition(&self, name: &str) -> Option<(usize, &Rendition)> {
        let mut renditions = self.renditions.iter().enumerate();
        renditions.find(|(_, rendition)| rendition.name == name)
    }

    /// Iterates over the video renditions in order.
    pub fn video_renditions(&self) -> impl Iterator<Item = &Rendition> {
        let is_video = |r: &&Rendition| self.track(r).codec.video().is_some();
        self.renditions.iter().filter(is_video)
    }

    /// Iterates over the audio renditions in order.
    pub fn audio_renditions(&self) -> impl Iterator<Item = &Rendition> {
        let is_audio = |r: &&Rendition| self.track(r).codec.audio().is_some();
        self.renditions.iter().filter(is_audio)
    }
}
