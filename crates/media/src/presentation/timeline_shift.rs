//! One time shift for all tracks of a title, so that no served time is below zero.

use super::served_tracks::ServedTrack;
use crate::error::{Error, ErrorKind, Result};
use crate::time::{Time, gcd};

/// Maximum duration of a track, and maximum delay of a track's start after the other tracks, in
/// hours. The limit prevents sums of times from overflowing.
pub const TRACK_HOURS_MAX: i64 = 10_000;

/// A shift of `count / per_second` seconds. `per_second` divides every timescale of the title, so
/// the shift is a whole number of ticks in each timescale.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineShift {
    count: i64,
    /// The shift of the title's time zero. It differs from `count` for films that start late.
    zero_count: i64,
    /// The part of `count` and `zero_count` that was added only so that MPDs contain a
    /// presentationTimeOffset.
    added_count: i64,
    per_second: u32,
}

impl TimelineShift {
    /// Returns the smallest shift with which no decode time is below zero. The shift is negative
    /// for titles that start late.
    ///
    /// With this shift, the title's time zero may be at the served time 0. In this case, the
    /// longest decode delay is added, so that MPDs of titles with a decode delay contain a
    /// presentationTimeOffset. Without a presentationTimeOffset, Shaka Player 5.2 uses the decode
    /// time of a segment as its presentation time (getTimestampAndDispatchMetadata). Text is then
    /// shown too late by the difference.
    pub(super) fn find_smallest_shift(tracks: &[ServedTrack]) -> TimelineShift {
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

    /// Returns the served time of the track's sample 0, in ticks of the track. With this value, the
    /// served time of the first served sample equals the track's earliest presentation time.
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

    /// Returns the part of the shift that was added only so that MPDs contain a
    /// presentationTimeOffset; 0 if there is no such part. The version hash depends on this part.
    pub(super) fn presentation_time_offset_padding(self) -> u64 {
        self.added_count as u64
    }

    /// Returns the position of the film's time zero on the served timeline. In a film that starts
    /// late, this is the start of the film.
    pub(super) fn film_zero(self) -> Time {
        Time::new(self.zero_count, self.per_second)
    }
}

/// Returns the longest time from decoding to presentation, in units of `1 / per_second` s.
fn longest_decode_delay(tracks: &[ServedTrack], per_second: u32) -> i64 {
    let delays = tracks.iter().map(|track| {
        Time::new(track.decode_delay().into(), track.track.timescale).ceil_to(per_second)
    });
    delays.max().unwrap_or(0)
}
