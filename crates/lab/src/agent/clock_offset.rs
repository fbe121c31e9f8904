//! Estimates the offset of a remote clock from the shortest of several round trips.

/// The offset of a remote clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClockOffset {
    /// Remote time minus local time, in nanoseconds.
    pub(super) ns: i64,
    /// Maximum error of the offset, which is half of the round-trip time.
    pub(super) error_ns: u64,
}

/// The timestamps of one round trip: the local times of sending and receiving, and the remote time
/// in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrip {
    pub(super) sent_ns: u64,
    pub(super) theirs_ns: u64,
    pub(super) answered_ns: u64,
}

impl ClockOffset {
    /// Estimates the offset from the shortest round trip, which has the smallest maximum error.
    /// Returns `None` if there are no round trips.
    pub(super) fn estimate_clock_offset(trips: &[RoundTrip]) -> Option<ClockOffset> {
        let length = |trip: &RoundTrip| trip.answered_ns.saturating_sub(trip.sent_ns);
        let shortest = trips.iter().min_by_key(|trip| length(trip))?;
        let half = length(shortest) / 2;
        let middle = shortest.sent_ns.saturating_add(half);
        Some(ClockOffset {
            ns: shortest.theirs_ns.wrapping_sub(middle).cast_signed(),
            error_ns: half,
        })
    }

    /// Converts a local time to the time of the remote clock.
    pub(super) fn to_remote_time(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            offset in -1_000_000_000i64..1_000_000_000,
            trips in proptest::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..20),
        ) {
            let begin = 1_000_000_000_000_000_000u64;
            let trips: Vec<RoundTrip> = trips
                .iter()
                .map(|(there, back)| RoundTrip {
                    sent_ns: begin,
                    theirs_ns: (begin + there).saturating_add_signed(offset),
                    answered_ns: begin + there + back,
                })
                .collect();
            let found = ClockOffset::estimate_clock_offset(&trips).unwrap();
            prop_assert!((found.ns - offset).unsigned_abs() <= found.error_ns + 1);
            prop_assert_eq!(found.to_remote_time(begin), begin.saturating_add_signed(found.ns));
        }
    }
}
