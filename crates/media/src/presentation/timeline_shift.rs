//! One time shift for all tracks of a title, so that no served time is below zero.

use super::served_tracks::ServedTrack;
use crate::error::{Error, ErrorKind, Result};
use crate::time::{Time, gcd};

/// Maximum duration of a track, and maximum time by which it starts after the other tracks, in
/// hours. It keeps sums of times from overflowing.
pub const TRACK_HOURS_MAX: i64 = 10_000;

/// A shift of `count / per_second` seconds. `per_second` divides every timescale of the title, so
/// the shift is exact in each.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineShift {
    count: i64,
    /// The shift of the title's zero. It differs from `count` for films that start late.
    zero_count: i64,
    /// The part of `count` and `zero_count` that was added only to keep the title's zero above 0.
    added_count: i64,
    per_second: u32,
}

impl TimelineShift {
    /// Returns the smallest shift that leaves no decode time below zero. It is negative for titles
    /// that start late.
    ///
    /// If pictures are presented later than decoded, the title's zero is never 0, so that there is
    /// a presentationTimeOffset. Without one, Shaka Player 5.2 uses the decode time of a segment as
    /// its presentation time (getTimestampAndDispatchMetadata) and shows text too late by the
    /// difference.
    pub(super) fn for_tracks(tracks: &[ServedTrack]) -> TimelineShift {
        let per_second = tracks
            .iter()
            .fold(0, |g, track| gcd(g, track.track.timescale))
            .max(1);
        let shift_needed = |time: fn(&ServedTrack) -> i64| {
            let each = tracks.iter().map(|track| {
                Time::new(time(track).saturating_neg(), track.track.timescale).ceil_to(per_second)
            });
            each.max().unwrap_or(0)
        };
        let count = shift_needed(|track| track.first_decode_time());
        let zero_count =
            count.max(count.saturating_sub(shift_needed(|track| track.earliest_presentation())));
        let added_count = match zero_count {
            0 => longest_decode_delay(tracks, per_second),
            _ => 0,
        };
        TimelineShift {
            count: count.saturating_add(added_count),
            zero_count: zero_count.saturating_add(added_count),
            added_count,
            per_second,
        }
    }

    /// Returns the served time of the track's sample 0, in its ticks. It makes the time of the
    /// first served sample equal the track's earliest presentation time.
    pub(super) fn track_start(self, track: &ServedTrack) -> Result<i64> {
        let ticks = i128::from(self.count) * i128::from(track.track.timescale / self.per_second);
        let lag = i128::from(track.presentation_lag());
        let start = ticks + i128::from(track.track.presentation_offset) + lag;
        let limit = i128::from(TRACK_HOURS_MAX * 3600) * i128::from(track.track.timescale);
        if start.abs() > limit || i128::from(track.track.samples.total_duration()) > limit {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "track {} lasts more than {TRACK_HOURS_MAX} hours, or starts that long after the others",
                    track.track.id
                ),
            ));
        }
        Ok(start as i64)
    }

    /// Returns the shift that was added only to keep the title's zero above 0, for the version
    /// hash; 0 if none was added.
    pub(super) fn version(self) -> u64 {
        self.added_count as u64
    }

    /// Returns the film's own time zero; in films that start late, their start.
    pub(super) fn film_zero(self) -> Time {
        Time::new(self.zero_count, self.per_second)
    }
}

/// Returns the longest time from decoding to presentation, in counts of `1 / per_second` s.
fn longest_decode_delay(tracks: &[ServedTrack], per_second: u32) -> i64 {
    let delays = tracks.iter().map(|track| {
        Time::new(track.decode_delay().into(), track.track.timescale).ceil_to(per_second)
    });
    delays.max().unwrap_or(0)
}
