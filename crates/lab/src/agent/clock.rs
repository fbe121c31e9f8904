//! How far another's clock is from ours, from round trips of which the shortest is believed.

/// A clock beside ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Offset {
    /// The other's time less ours, in nanoseconds.
    pub(super) ns: i64,
    /// How far from the truth that may be: half of the round trip.
    pub(super) error_ns: u64,
}

/// One round trip: sent and answered by our clock, and what the other's said in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trip {
    pub(super) sent_ns: u64,
    pub(super) theirs_ns: u64,
    pub(super) answered_ns: u64,
}

impl Offset {
    /// From the shortest trip; none of none.
    pub(super) fn of(trips: &[Trip]) -> Option<Offset> {
        let length = |trip: &Trip| trip.answered_ns.saturating_sub(trip.sent_ns);
        let shortest = trips.iter().min_by_key(|trip| length(trip))?;
        let half = length(shortest) / 2;
        let middle = shortest.sent_ns.saturating_add(half);
        Some(Offset {
            ns: shortest.theirs_ns.wrapping_sub(middle).cast_signed(),
            error_ns: half,
        })
    }

    /// A time of ours by the other's clock.
    pub(super) fn theirs(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_truth_is_within_the_error(
            offset in -1_000_000_000i64..1_000_000_000,
            trips in proptest::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..20),
        ) {
            let begin = 1_000_000_000_000_000_000u64;
            let trips: Vec<Trip> = trips
                .iter()
                .map(|(there, back)| Trip {
                    sent_ns: begin,
                    theirs_ns: (begin + there).saturating_add_signed(offset),
                    answered_ns: begin + there + back,
                })
                .collect();
            let found = Offset::of(&trips).unwrap();
            prop_assert!((found.ns - offset).unsigned_abs() <= found.error_ns + 1);
            prop_assert_eq!(found.theirs(begin), begin.saturating_add_signed(found.ns));
        }
    }
}
