//! Abandons a segment that arrives too slowly, and requests the segment at another level instead.

use super::super::abr::{AbandonRule, DownloadSample, PartialDownload};
use super::super::player_interface::{FetchPurpose, Micros};
use super::Viewer;
use super::track_buffer::PendingFetch;

/// Time between two decisions whether to abandon a segment, as in hls.js.
const CHECK_INTERVAL_US: Micros = 100_000;
/// Shaka Player samples the throughput of a segment in flight each time at least this many bytes
/// have arrived (`minBytesForProgressEvents`).
const SAMPLE_BYTES_MIN: u64 = 16_000;

/// Time for which dash.js does not raise the level after abandoning a segment
/// (`abandonLoadTimeout`).
const DASH_JS_HOLD_US: Micros = 10_000_000;

/// A segment that was abandoned.
#[derive(Debug, Clone, Copy)]
pub(super) struct AbandonedSegment {
    at: Micros,
    /// Media time at which the buffer ended, in microseconds. The abandoned segment starts at this
    /// time.
    end_us: i64,
    /// The level at which the segment was requested instead.
    level: usize,
}

impl Viewer {
    /// Sets the time of the first decision whether to abandon the segment that is requested at
    /// `now`.
    pub(super) fn plan_abandon_check(&mut self, now: Micros, pending: &PendingFetch) {
        let earliest_abandonment_s = self
            .settings
            .abandon
            .earliest_abandonment_s(pending.duration_us as f64 / 1e6);
        let is_adaptive = self.abr.as_ref().is_some_and(|abr| abr.is_adaptive());
        self.abandon_check = (is_adaptive && earliest_abandonment_s.is_finite())
            .then(|| now + ((earliest_abandonment_s * 1e6) as Micros).max(CHECK_INTERVAL_US));
    }

    /// Abandons the segment in flight if the rule of the player chooses another level for this
    /// segment.
    pub(super) fn abandon_slow_segment(&mut self, now: Micros) {
        if self.abandon_check.is_none_or(|at| now < at) {
            return;
        }
        self.abandon_check = None;
        let Some(pending) = self.segment_in_flight().copied() else {
            return;
        };
        self.abandon_check = Some(now + CHECK_INTERVAL_US);
        if self.settings.abandon == AbandonRule::Shaka {
            self.sample_progress(now, &pending);
        }
        if !self.may_abandon() {
            return;
        }
        if let Some(level) = self.choose_replacement_level(now, &pending) {
            self.refetch_at_level(now, &pending, level);
        }
    }

    /// Returns the limit that dash.js sets on the level for some time after it abandons a segment.
    /// Returns none if there is no limit now.
    pub(super) fn level_limit_after_abandonment(&self, now: Micros) -> Option<usize> {
        let abandoned = self.abandoned?;
        let holds =
            self.settings.abandon == AbandonRule::DashJs && now < abandoned.at + DASH_JS_HOLD_US;
        holds.then_some(abandoned.level)
    }

    /// Returns the main track's segment in flight, if any.
    fn segment_in_flight(&self) -> Option<&PendingFetch> {
        let pending = self.tracks.first()?.slot.pending_fetch()?;
        matches!(pending.purpose, FetchPurpose::Video | FetchPurpose::Audio).then_some(pending)
    }

    /// Returns whether the player may abandon a segment in the current state.
    fn may_abandon(&self) -> bool {
        match self.settings.abandon {
            // The video element is paused until the first segment has arrived. hls.js abandons no
            // segment while the video element is paused.
            AbandonRule::HlsJs => self.clock.has_started(),
            // dash.js abandons each segment at most once.
            AbandonRule::DashJs => {
                let end_us = self.tracks.first().map(|track| track.end_us);
                self.abandoned.map(|abandoned| abandoned.end_us) != end_us
            }
            AbandonRule::Shaka => true,
            AbandonRule::Never => false,
        }
    }

    fn choose_replacement_level(&mut self, now: Micros, pending: &PendingFetch) -> Option<usize> {
        let mut abr = self.abr.take()?;
        let view = self.player_view(pending.duration_us as f64 / 1e6);
        let seconds = |at: Micros| at.saturating_sub(pending.at) as f64 / 1e6;
        let partial = PartialDownload {
            level: pending.level,
            elapsed_s: seconds(now),
            latency_s: pending.progress.first_byte.map(seconds),
            bits: pending.progress.bytes as f64 * 8.0,
        };
        let level = self
            .settings
            .abandon
            .choose_replacement_level(&view, &partial, abr.as_mut());
        self.abr = Some(abr);
        level
    }

    /// Cancels the fetch of a segment, and chooses another level for the same segment.
    fn refetch_at_level(&mut self, now: Micros, pending: &PendingFetch, level: usize) {
        let sample = partial_sample(now, pending);
        // dash.js measures the throughput of complete segments only.
        if self.settings.abandon != AbandonRule::DashJs {
            self.estimator.add_sample(&sample);
        }
        if let Some(abr) = &mut self.abr
            && self.settings.abandon == AbandonRule::HlsJs
        {
            abr.record_sample(&sample);
            abr.assume_throughput(self.bitrates[level]);
        }
        self.journal.abandoned += 1;
        self.journal.abandoned_bytes += pending.progress.bytes;
        let main = &mut self.tracks[0];
        let end_us = main.end_us;
        self.abandoned = Some(AbandonedSegment {
            at: now,
            end_us,
            level,
        });
        self.cancelled.extend(main.slot.cancel_fetch());
        main.next = Some((level, usize::from(self.levels[level])));
        self.abandon_check = None;
    }

    /// Passes the throughput since the last sample to the bitrate rule.
    fn sample_progress(&mut self, now: Micros, pending: &PendingFetch) {
        let (bytes, since) = pending.sampled;
        let count = pending.progress.bytes.saturating_sub(bytes);
        if count < SAMPLE_BYTES_MIN {
            return;
        }
        let sample = DownloadSample {
            bits: count as f64 * 8.0,
            transfer_s: now.saturating_sub(since) as f64 / 1e6,
            latency_s: 0.0,
            segment_s: pending.duration_us as f64 / 1e6,
        };
        self.abr
            .iter_mut()
            .for_each(|abr| abr.record_sample(&sample));
        self.tracks[0].slot.mark_sampled(now);
    }
}

/// Returns the download sample of a partially received segment.
fn partial_sample(now: Micros, pending: &PendingFetch) -> DownloadSample {
    let first_byte = pending.progress.first_byte.unwrap_or(now);
    DownloadSample {
        bits: pending.progress.bytes as f64 * 8.0,
        transfer_s: now.saturating_sub(first_byte) as f64 / 1e6,
        latency_s: first_byte.saturating_sub(pending.at) as f64 / 1e6,
        segment_s: pending.duration_us as f64 / 1e6,
    }
}
