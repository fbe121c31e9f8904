//! Finds segments and key frames by the times in URLs, and computes the times and durations of
//! segments and key frames. Finding a segment takes logarithmic time.

use super::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;

/// Minimum distance between the trick-play key frames of a segment, in seconds. Trick play needs at
/// most one picture per second, but in all-intra films every picture is a key frame.
const KEY_SPACING_SECONDS: u64 = 1;

/// If a rendition starts at most this many milliseconds after the earliest rendition, the listed
/// durations do not include the difference.
const LEAD_MS: u64 = 250;

impl Presentation {
    /// Returns the earliest presentation time of segment `n`, in the track's ticks. URLs name the
    /// segment by this time. Past the last segment, returns the end of the rendition.
    pub fn segment_start(&self, rendition: &Rendition, n: usize) -> u64 {
        let starts = &rendition.segment_starts;
        starts.get(n).or(starts.last()).copied().unwrap_or(0)
    }

    /// Returns the duration of segment `n` in ticks; 0 past the last segment.
    pub fn segment_duration_ticks(&self, rendition: &Rendition, n: usize) -> u64 {
        self.segment_start(rendition, n + 1) - self.segment_start(rendition, n)
    }

    /// Returns the samples of segment `n`; an empty range past the last segment.
    pub fn segment_samples(&self, rendition: &Rendition, n: usize) -> Range<u32> {
        let end = rendition.segment_cuts.last().copied().unwrap_or(0);
        let cut = |n: usize| rendition.segment_cuts.get(n).copied().unwrap_or(end);
        cut(n)..cut(n.saturating_add(1))
    }

    /// Returns the `EXTINF` duration of segment `n`.
    ///
    /// If a rendition starts more than 250 ms after the earliest rendition, the duration of its
    /// first segment includes this difference, so that playlists stay aligned.
    pub fn listed_segment_duration(&self, rendition: &Rendition, n: usize) -> Time {
        let ticks = self.segment_duration_ticks(rendition, n)
            + if n == 0 {
                self.late_start_ticks(rendition)
            } else {
                0
            };
        Time::new(ticks as i64, self.track(rendition).timescale)
    }

    /// Returns the ticks from the start of the earliest rendition to the start of this rendition; 0
    /// if this time is at most 250 ms.
    pub(crate) fn late_start_ticks(&self, rendition: &Rendition) -> u64 {
        let timescale = self.track(rendition).timescale;
        let earliest = self
            .renditions
            .iter()
            .map(|other| self.rendition_start_time(other))
            .min();
        let earliest = earliest.unwrap_or(Time::ZERO).round_to(timescale).max(0) as u64;
        let lead = self.segment_start(rendition, 0).saturating_sub(earliest);
        if lead * 1000 > u64::from(timescale) * LEAD_MS {
            lead
        } else {
            0
        }
    }

    /// Returns the duration of the hidden pictures that are served before the film's time zero. An
    /// edit that starts inside a GOP hides these pictures, but the first visible picture depends on
    /// them. Returns zero for audio, and for a duration of less than one frame.
    pub fn hidden_lead(&self, rendition: &Rendition) -> Time {
        let timescale = self.track(rendition).timescale;
        let zero = self.presentation_time_offset.round_to(timescale);
        let ticks = zero.saturating_sub(self.segment_start(rendition, 0) as i64);
        let (frames, seconds) = rendition.frame_rate;
        let frame_ticks = u128::from(seconds) * u128::from(timescale);
        let is_frame = u128::from(frames) * u128::from(ticks.max(0).unsigned_abs()) >= frame_ticks;
        if is_frame {
            Time::new(ticks, timescale)
        } else {
            Time::ZERO
        }
    }

    /// Returns the segment that starts exactly at `time`, in ticks.
    pub fn find_segment(&self, rendition: &Rendition, time: u64) -> Option<usize> {
        let n = self.find_segment_at_time(rendition, time)?;
        (self.segment_start(rendition, n) == time).then_some(n)
    }

    /// Returns the sample number of the trick-play key frame at exactly `time`, in ticks.
    pub fn find_key_frame_by_time(&self, rendition: &Rendition, time: u64) -> Option<u32> {
        let n = self.find_segment_at_time(rendition, time)?;
        let mut keys = self.trick_play_key_frames_of_segment(rendition, n);
        keys.find(|key| self.presentation_time(rendition, *key) == time)
    }

    /// Iterates over the key frames for trick play and I-frame playlists. These are the first key
    /// frame of each segment, and later key frames of the segment at least a second apart.
    pub fn trick_play_key_frames<'a>(
        &'a self,
        rendition: &'a Rendition,
    ) -> impl Iterator<Item = u32> + 'a {
        (0..rendition.segment_count())
            .flat_map(move |n| self.trick_play_key_frames_of_segment(rendition, n))
    }

    /// Returns the trick-play key frame after `key`. If `key` is the last one, returns the number
    /// of samples.
    pub fn find_next_trick_play_frame(&self, rendition: &Rendition, key: u32) -> u32 {
        let n = rendition.segment_cuts.partition_point(|cut| *cut <= key);
        let mut later = self
            .trick_play_key_frames_of_segment(rendition, n.saturating_sub(1))
            .skip_while(|k| *k <= key);
        later
            .next()
            .or_else(|| rendition.segment_cuts.get(n).copied())
            .unwrap_or(u32::MAX)
    }

    /// Returns the earliest presentation time of a rendition on the served timeline.
    pub fn rendition_start_time(&self, rendition: &Rendition) -> Time {
        let ticks = self.segment_start(rendition, 0);
        Time::new(ticks as i64, self.track(rendition).timescale)
    }

    /// Returns the presentation time of a sample on the served timeline, in ticks. Past the last
    /// sample, returns the end of the rendition.
    pub(crate) fn presentation_time(&self, rendition: &Rendition, sample: u32) -> u64 {
        let samples = &self.track(rendition).samples;
        if sample >= samples.len() {
            return self.segment_start(rendition, usize::MAX);
        }
        let offset = rendition.served_composition_offset(samples.composition_offset(sample));
        self.decode_time(rendition, sample)
            .saturating_add_signed(offset)
    }

    /// Returns the decode time of a sample on the served timeline, in ticks. This time is the
    /// `tfdt` of a fragment that starts with the sample.
    pub(crate) fn decode_time(&self, rendition: &Rendition, sample: u32) -> u64 {
        let dts = self.track(rendition).samples.dts(sample) as i64;
        (rendition.start_ticks + dts - i64::from(rendition.decode_delay)).max(0) as u64
    }

    /// Returns the segment that contains `time`.
    fn find_segment_at_time(&self, rendition: &Rendition, time: u64) -> Option<usize> {
        let starts = &rendition.segment_starts[..rendition.segment_count()];
        starts
            .partition_point(|start| *start <= time)
            .checked_sub(1)
    }

    /// Returns the longest time from one trick-play key frame to the next. Returns `None` if the
    /// rendition has no leading pictures, because no time between key frames is then longer than
    /// the longest segment.
    pub(super) fn longest_key_frame_interval(&self, rendition: &Rendition) -> Option<Time> {
        if !rendition.has_leading_pictures {
            return None;
        }
        let ends = self
            .trick_play_key_frames(rendition)
            .skip(1)
            .chain([u32::MAX]);
        let mut from = self.segment_start(rendition, 0);
        // As in the first segment, the listed duration of the first key frame includes the time
        // from the earliest rendition's start to this rendition's start.
        let mut lead = self.late_start_ticks(rendition);
        let lengths = ends.map(|end| {
            let until = self.presentation_time(rendition, end);
            let length = until.saturating_sub(std::mem::replace(&mut from, until));
            length.saturating_add(std::mem::take(&mut lead))
        });
        let ticks = lengths.max()? as i64;
        Some(Time::new(ticks, self.track(rendition).timescale))
    }

    fn trick_play_key_frames_of_segment<'a>(
        &'a self,
        rendition: &'a Rendition,
        n: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        let track = self.track(rendition);
        let spacing = KEY_SPACING_SECONDS * u64::from(track.timescale);
        let end = rendition.segment_cuts.get(n + 1).copied().unwrap_or(0);
        let first = rendition.segment_cuts.get(n).copied().filter(|_| end > 0);
        let segment_end = self.segment_start(rendition, n.saturating_add(1));
        let mut last_time = None;
        let keys = std::iter::successors(first, move |key| {
            let from = track.samples.dts(*key) + spacing;
            let mut at = track.samples.first_sync_from(*key + 1)?;
            // Usually the next sync sample is far enough from `key`. Otherwise, the first sync
            // sample that is decoded at `from` or later is used.
            if track.samples.dts(at) < from {
                at = track
                    .samples
                    .first_sync_from(track.samples.sample_at_dts(from))?;
            }
            if track.samples.dts(at) < from {
                at = track.samples.first_sync_from(at + 1)?;
            }
            (at < end && track.samples.dts(at) < track.samples.total_duration()).then_some(at)
        });
        // URLs name key frames by their presentation times, so these times must increase and must
        // be within the segment.
        keys.filter(move |key| {
            let time = self.presentation_time(rendition, *key);
            let is_later = time < segment_end && last_time.is_none_or(|last| time > last);
            last_time = if is_later { Some(time) } else { last_time };
            is_later
        })
    }
}
