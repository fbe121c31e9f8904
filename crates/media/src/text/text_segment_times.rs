//! The segments of text. They have the boundaries of the video segments, in a timescale that is
//! precise enough for cues.

use super::{CueList, TextBandwidths, TextSet};
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// Minimum timescale of text, in ticks per second. A lower timescale could not express the times of
/// cues, which are in milliseconds.
const TIMESCALE_MIN: u32 = 1000;

/// The segments of a title's text.
///
/// Times are on the served timeline, as in video segments. The film starts at
/// [`Presentation::presentation_time_offset`].
#[derive(Debug, Clone, Copy)]
pub struct TextSegmentTimes<'a> {
    presentation: &'a Presentation,
    /// The rendition whose segment boundaries text uses: the first video rendition, or the first
    /// audio rendition of a title without video.
    reference: &'a Rendition,
    /// Ticks of text per tick of `reference`.
    factor: u32,
    /// Ticks of text per second.
    timescale: u32,
    /// Start of the film on the served timeline, in ticks, rounded.
    zero_ticks: i64,
}

impl Presentation {
    /// Returns the same presentation with text.
    #[must_use]
    pub fn with_text(self, text: Arc<TextSet>) -> Presentation {
        Presentation {
            text,
            text_bandwidths: TextBandwidths::default(),
            ..self
        }
    }

    /// Returns the segments of the text. `None` if the presentation has no rendition.
    pub fn text_segment_times(&self) -> Option<TextSegmentTimes<'_>> {
        let reference = self.renditions.first()?;
        let own_timescale = self.track(reference).timescale;
        let factor = TIMESCALE_MIN.div_ceil(own_timescale);
        let timescale = own_timescale.saturating_mul(factor);
        Some(TextSegmentTimes {
            presentation: self,
            reference,
            factor,
            timescale,
            zero_ticks: self.presentation_time_offset.round_to(timescale),
        })
    }

    /// Returns the version in the URLs of text. It changes with the cues and with the segments of
    /// the film. Video URLs do not contain this version, so new subtitles do not change video URLs.
    pub fn text_version(&self) -> u64 {
        self.text.content_hash() ^ self.version_hash.rotate_left(1)
    }
}

impl<'a> TextSegmentTimes<'a> {
    /// Returns the timescale of text, in ticks per second.
    pub fn timescale(&self) -> u32 {
        self.timescale
    }

    /// Returns the rendition whose segment boundaries text uses.
    pub(crate) fn reference_rendition(&self) -> &'a Rendition {
        self.reference
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.reference.segment_count()
    }

    /// Returns the start of segment `n` in ticks. This number is also the name of the segment in
    /// URLs. For `n` after the last segment, returns the end of the last segment.
    ///
    /// The first segment starts with the film, even if the first picture is later. Otherwise Shaka
    /// Player would show the cues of all later segments too late. The delay would be the time from
    /// the start of the film to the first picture.
    pub fn segment_start(&self, n: usize) -> u64 {
        let start = self.presentation.segment_start(self.reference, n);
        let start = start.saturating_mul(self.factor.into());
        let zero = u64::try_from(self.zero_ticks).unwrap_or(0);
        if n == 0 { start.min(zero) } else { start }
    }

    /// Returns the segment that starts exactly at `time`, in ticks.
    pub fn find_segment(&self, time: u64) -> Option<usize> {
        if time == self.segment_start(0) {
            return Some(0);
        }
        let factor = u64::from(self.factor);
        let is_exact = time.is_multiple_of(factor);
        let found = is_exact.then(|| {
            self.presentation
                .find_segment(self.reference, time / factor)
        });
        found.flatten().filter(|n| *n > 0)
    }

    /// Returns the start of the film on the served timeline.
    pub fn served_film_start(&self) -> Time {
        self.presentation.presentation_time_offset
    }

    /// Returns the range of film times that segment `n` covers, in milliseconds. The first range
    /// has no lower limit and the last range has no upper limit, so that cues outside the video are
    /// served, too.
    pub fn shown_ms(&self, n: usize) -> Range<i64> {
        let film_ms = |ticks: u64| {
            let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
            Time::new(ticks.saturating_sub(self.zero_ticks), self.timescale).round_to(1000)
        };
        let start = match n {
            0 => i64::MIN,
            n => film_ms(self.segment_start(n)),
        };
        let end = match n + 1 < self.segment_count() {
            true => film_ms(self.segment_start(n + 1)),
            false => i64::MAX,
        };
        start..end
    }

    /// Converts a time of the film from milliseconds to ticks on the served timeline.
    pub(super) fn ticks_from_film_ms(&self, ms: i64) -> i64 {
        let ticks = Time::from_ms(ms).round_to(self.timescale);
        ticks.saturating_add(self.zero_ticks)
    }

    /// Returns the peak and average bits per second of the segments. `len` returns the length of a
    /// segment in bytes.
    pub(crate) fn measure_bandwidth(
        &self,
        len: impl Fn(usize) -> u64,
    ) -> crate::presentation::Bandwidth {
        self.presentation.measure_bandwidth(self.reference, len)
    }

    /// Iterates over the cues that are shown during segment `n`.
    pub(super) fn cues_of_segment<'b>(
        &self,
        list: &'b CueList,
        n: usize,
    ) -> impl Iterator<Item = &'b super::Cue> {
        list.cues_within(self.shown_ms(n))
    }
}
