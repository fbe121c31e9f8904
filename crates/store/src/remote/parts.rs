//! Several ranges of one object, asked for together.

use super::object::RemoteObject;
use super::passing::Passing;
use crate::ranges::Flight;
use crate::{Error, Reason};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Ranges up to this together are fetched at once and kept; longer ones pass through, little faster
/// than they are taken.
const KEPT_BYTES_MAX: u64 = 32 << 20;
/// The same for files as they are, of which other parts are seldom asked for again.
const PLAIN_BYTES_MAX: u64 = 4 << 20;

/// What is read at once before those who wait for it get their turn on the same thread.
const AHEAD_BYTES_MAX: usize = 192 << 10;

type Ranges = Vec<Range<u64>>;

/// Bytes of the wanted ranges, in the order they were named.
pub struct Parts {
    wanted: VecDeque<Range<u64>>,
    from: From,
}

enum From {
    /// In order of place, not overlapping; together they hold all that is wanted.
    Flights(Vec<Arc<Flight<Error>>>),
    /// Pieces, each of one wanted range.
    Passing(Passing),
}

impl Parts {
    /// The next bytes of the wanted ranges, as many as there are now; never of two ranges at
    /// once. Empty at the end. May be dropped while it waits, and asked again.
    ///
    /// # Errors
    /// What came before is right, and nothing comes after.
    pub async fn next(&mut self) -> Result<Vec<Bytes>, Error> {
        let Some(range) = self.wanted.front_mut() else {
            return Ok(Vec::new());
        };
        let slices = match &mut self.from {
            From::Flights(flights) => {
                let place = flights.partition_point(|flight| flight.range().end <= range.start);
                let flight = flights.get(place).ok_or(Error::Changed)?;
                let end = flight.range().end.min(range.end);
                flight.some(&(range.start..end)).await?
            }
            From::Passing(passing) => vec![passing.next().await?],
        };
        range.start += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        if range.start >= range.end {
            self.wanted.pop_front();
        }
        Ok(slices)
    }

    /// Waits until there is a first byte.
    async fn begun(&mut self) -> Result<(), Error> {
        let Some(range) = self.wanted.front() else {
            return Ok(());
        };
        match &mut self.from {
            From::Flights(flights) => {
                let holds = |flight: &&Arc<Flight<Error>>| flight.range().contains(&range.start);
                let flight = flights.iter().find(holds).ok_or(Error::Changed)?;
                flight.some(&(range.start..range.start + 1)).await?;
            }
            From::Passing(passing) => passing.begun().await?,
        }
        Ok(())
    }
}

/// See [`RemoteObject::parts`].
pub(super) async fn start(
    object: &Arc<RemoteObject>,
    wanted: Ranges,
    along: &[Range<u64>],
    reason: Reason,
) -> Result<Parts, Error> {
    let wanted: VecDeque<_> = wanted
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect();
    let most = match reason {
        Reason::Plain => PLAIN_BYTES_MAX,
        _ => KEPT_BYTES_MAX,
    };
    let options = &object.core().options;
    // What is read along is of use only while it is kept.
    let along = if options.memory_bytes > 0 { along } else { &[] };
    let extents = extents(&wanted, along, options.waste_bytes, most);
    let flights = extents.and_then(|extents| flights(object, &extents, reason));
    let from = match flights {
        Some(flights) => From::Flights(flights),
        None => From::Passing(Passing::start(object, &wanted, reason)),
    };
    let mut parts = Parts { wanted, from };
    parts.begun().await?;
    Ok(parts)
}

/// See [`RemoteObject::read_ahead`].
pub(super) fn ahead(object: &Arc<RemoteObject>, ranges: &[Range<u64>], along: &[Range<u64>]) {
    let options = &object.core().options;
    let wanted = ranges
        .iter()
        .filter(|range| !range.is_empty())
        .cloned()
        .collect();
    let most = KEPT_BYTES_MAX.min(options.memory_bytes / 4);
    if let Some(extents) = extents(&wanted, along, options.waste_bytes, most) {
        flights(object, &extents, Reason::Ahead);
    }
}

/// Flights that hold these extents; what is missing begins to be fetched. `None` where there is no
/// room for it.
fn flights(
    object: &Arc<RemoteObject>,
    extents: &[Range<u64>],
    reason: Reason,
) -> Option<Vec<Arc<Flight<Error>>>> {
    let core = object.core();
    let mut all = Vec::new();
    for extent in extents {
        let cover = core
            .cache
            .cover(object.name(), extent.clone(), core.room())?;
        for flight in cover.missing {
            let landing = Landing {
                object: object.clone(),
                flight,
            };
            core.spawn(landing.fetch(reason));
        }
        all.extend(cover.flights);
    }
    Some(all)
}

/// A flight that is fetched, and ends however that ends.
struct Landing {
    object: Arc<RemoteObject>,
    flight: Arc<Flight<Error>>,
}

impl Landing {
    async fn fetch(self, reason: Reason) {
        let outcome = self.fill(reason).await;
        if let Err(error) = &outcome {
            self.object.notice(error);
            // Before anybody hears of it, so that who then asks again begins anew.
            self.leave();
        }
        self.flight.end(outcome);
    }

    async fn fill(&self, reason: Reason) -> Result<(), Error> {
        let ask = self.object.ask(self.flight.range(), reason);
        let (_, mut whole) = self.object.core().whole(ask, reason).await?;
        let mut ahead = 0;
        while let Some(bytes) = whole.next().await? {
            ahead += bytes.len();
            self.flight.push(bytes);
            if ahead >= AHEAD_BYTES_MAX {
                // Whoever sends them has them while they are near, and their buffer is free for
                // those that follow.
                ahead = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

impl Landing {
    /// It is kept if it is whole, else forgotten.
    fn leave(&self) {
        let core = self.object.core();
        core.cache.ended(self.object.name(), &self.flight);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.leave();
        // Without effect after a regular end.
        let ended = Error::Broken("the storage's threads have ended".into());
        self.flight.end(Err(ended));
    }
}

/// What to fetch so that all of `wanted` is there: as few extents as may be when up to `waste`
/// bytes between two wanted ones are read along, and `along` where it lies as near. In order of
/// place, not overlapping. `None` if they are over `most` bytes together.
fn extents(
    wanted: &VecDeque<Range<u64>>,
    along: &[Range<u64>],
    waste: u64,
    most: u64,
) -> Option<Ranges> {
    let total = |extents: &Ranges| extents.iter().map(|e| e.end - e.start).sum::<u64>();
    let alone = joined(wanted.iter().cloned().collect(), waste);
    let mut together = joined(wanted.iter().chain(along).cloned().collect(), waste);
    let holds =
        |extent: &Range<u64>, one: &Range<u64>| extent.start <= one.start && one.end <= extent.end;
    together.retain(|extent| alone.iter().any(|one| holds(extent, one)));
    [together, alone]
        .into_iter()
        .find(|extents| total(extents) <= most)
}

fn joined(mut ranges: Ranges, waste: u64) -> Ranges {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out: Ranges = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(waste) => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pairs = Vec<(u64, u64)>;

    fn check(wanted: &[(u64, u64)], along: &[(u64, u64)], waste: u64) -> Option<Pairs> {
        let ranges = |pairs: &[(u64, u64)]| pairs.iter().map(|(a, b)| *a..*b).collect::<Vec<_>>();
        let found = extents(&ranges(wanted).into(), &ranges(along), waste, 1000)?;
        Some(found.iter().map(|range| (range.start, range.end)).collect())
    }

    #[test]
    fn near_ranges_are_one_extent() {
        let wanted = [(0, 10), (15, 20), (40, 50)];
        assert_eq!(check(&wanted, &[], 5), Some(vec![(0, 20), (40, 50)]));
        assert_eq!(check(&wanted, &[], 20), Some(vec![(0, 50)]));
        assert_eq!(check(&wanted, &[], 4), Some(wanted.to_vec()));
    }

    #[test]
    fn what_lies_along_joins_but_never_alone() {
        let wanted = [(10, 20), (30, 40)];
        let along = [(0, 10), (20, 30), (40, 45), (200, 300)];
        assert_eq!(check(&wanted, &along, 0), Some(vec![(0, 45)]));
        let large = [(20, 30), (40, 1100)];
        assert_eq!(check(&wanted, &large, 0), Some(wanted.to_vec()));
        assert_eq!(check(&[(0, 2000)], &[], 0), None);
    }

    proptest! {
        #[test]
        fn extents_hold_all_that_is_wanted(
            wanted in prop::collection::vec((0u64..500, 0u64..60), 0..12),
            along in prop::collection::vec((0u64..500, 0u64..60), 0..12),
            waste in 0u64..50,
        ) {
            let ranges = |all: Vec<(u64, u64)>| all.into_iter().map(|(a, n)| a..a + n);
            let wanted: VecDeque<_> = ranges(wanted).collect();
            let along: Vec<_> = ranges(along).collect();
            let found = extents(&wanted, &along, waste, u64::MAX).unwrap();
            for range in wanted.iter().filter(|range| !range.is_empty()) {
                let holds = |e: &Range<u64>| e.start <= range.start && range.end <= e.end;
                prop_assert!(found.iter().any(holds));
            }
            for pair in found.windows(2) {
                prop_assert!(pair[0].end + waste < pair[1].start);
            }
        }
    }
}
