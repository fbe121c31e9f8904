//! One time by which all tracks of a title move, so that nothing is served before zero.

use super::tracks::Chosen;
use crate::error::{Error, Kind, Result};
use crate::time::{Time, gcd};

/// Longest track, and latest start after the others, that is packaged, in hours. A bound, so
/// that no sum of times overflows.
pub const LIMIT_HOURS: i64 = 10_000;

/// `count / per_second` seconds; `per_second` divides every timescale of the title, so the
/// shift is exact in each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    count: i64,
    /// The same for the title's zero, where that is another.
    zero: i64,
    per_second: u32,
}

impl Shift {
    /// The smallest shift that leaves no decode time below zero. Negative (towards zero) for
    /// titles that begin late.
    pub(super) fn common(tracks: &[Chosen]) -> Shift {
        let per_second = tracks
            .iter()
            .fold(0, |g, track| gcd(g, track.of.timescale))
            .max(1);
        let needed = |time: fn(&Chosen) -> i64| {
            let each = tracks.iter().map(|track| {
                Time::new(time(track).saturating_neg(), track.of.timescale).ceil_to(per_second)
            });
            each.max().unwrap_or(0)
        };
        let count = needed(|track| track.decoded());
        Shift {
            count,
            zero: count.max(count.saturating_sub(needed(|track| track.earliest()))),
            per_second,
        }
    }

    /// Served time of the track's sample 0, in its ticks: such that the time of its first served
    /// sample is when that is shown.
    pub(super) fn start(self, track: &Chosen) -> Result<i64> {
        let ticks = i128::from(self.count) * i128::from(track.of.timescale / self.per_second);
        let cts = i128::from(track.of.samples.cts(track.first));
        let start = ticks + i128::from(track.of.origin) + cts;
        let limit = i128::from(LIMIT_HOURS * 3600) * i128::from(track.of.timescale);
        if start.abs() > limit || i128::from(track.of.samples.end()) > limit {
            return Err(Error::new(
                Kind::TooLarge,
                format!(
                    "track {} lasts, or begins after the others by, more than {LIMIT_HOURS} hours",
                    track.of.id
                ),
            ));
        }
        Ok(start as i64)
    }

    /// Where the film's own time zero comes to lie; in films that begin late, where they begin.
    pub(super) fn zero(self) -> Time {
        Time::new(self.zero, self.per_second)
    }
}
