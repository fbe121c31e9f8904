//! The segments of text: those of the video, in a timescale that is precise enough for cues.

use super::{CueList, TextBandwidths, TextSet};
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of ticks per second of text. Cues have milliseconds.
const TIMESCALE_MIN: u32 = 1000;

/// The segments of a title's text.
///
/// Times count from zero of the served timeline, as those of video. The film starts at
/// [`Presentation::presentation_time_offset`].
#[derive(Debug, Clone, Copy)]
pub struct TextSegmentTimes<'a> {
    presentation: &'a Presentation,
    /// The rendition whose segments are copied: the first video, or the first audio.
    reference: &'a Rendition,
    /// Ticks of text per tick of that rendition.
    factor: u32,
    /// Ticks of text per second.
    timescale: u32,
    /// Time of the film's start in ticks, rounded.
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

    /// Returns the segments of the text; `None` if the presentation has no rendition.
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

    /// Returns the version of the text's URLs. It changes with the cues and with the segments of
    /// the film. Video URLs do not contain it, so that new subtitles leave them as they are.
    pub fn text_version(&self) -> u64 {
        self.text.content_hash() ^ self.version_hash.rotate_left(1)
    }
}

impl<'a> TextSegmentTimes<'a> {
    /// Ticks per second of the text's times.
    pub fn timescale(&self) -> u32 {
        self.timescale
    }

    /// Returns the rendition whose segments are copied.
    pub(crate) fn reference(&self) -> &'a Rendition {
        self.reference
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.reference.segment_count()
    }

    /// Returns the start of segment `n` in ticks, which is also its name. Past the last segment,
    /// returns the end of the last segment.
    ///
    /// The first segment starts with the film, even if the picture starts later. Otherwise Shaka
    /// Player shows the cues of all later segments too late, by the time between these two starts.
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

    /// Returns the time of the film's start.
    pub fn zero(&self) -> Time {
        self.presentation.presentation_time_offset
    }

    /// Returns the range of film times that segment `n` covers, in milliseconds. The first and the
    /// last segment include cues outside of the video.
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

    /// Returns the served time of a cue, in ticks.
    pub(super) fn served_ticks(&self, ms: i64) -> i64 {
        let ticks = Time::from_ms(ms).round_to(self.timescale);
        ticks.saturating_add(self.zero_ticks)
    }

    /// Returns the peak and average bits per second of segments whose lengths `len` returns.
    pub(crate) fn measure_bandwidth(
        &self,
        len: impl Fn(usize) -> u64,
    ) -> crate::presentation::Bandwidth {
        self.presentation.measure_bandwidth(self.reference, len)
    }

    /// Returns the cues of segment `n`.
    pub(super) fn cues_of<'b>(
        &self,
        list: &'b CueList,
        n: usize,
    ) -> impl Iterator<Item = &'b super::Cue> {
        list.cues_within(self.shown_ms(n))
    }
}
