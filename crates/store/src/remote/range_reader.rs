//! Reads several ranges of one object.

use super::object::RemoteObject;
use super::windowed_stream::WindowedStream;
use crate::range_cache::RangeFlight;
use crate::range_join::{join_ranges, sum_range_lens};
use crate::{Error, RequestReason};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Maximum total length, in bytes, of requested ranges that are fetched at once and cached. If the
/// ranges are longer, they are streamed.
const CACHED_BYTES_MAX: u64 = 32 << 20;
/// The corresponding limit for files that are sent unchanged. This limit is lower, because the
/// bytes of such files are rarely requested again.
const PLAIN_BYTES_MAX: u64 = 4 << 20;

/// Bytes that a fetch receives before it yields to its readers on the same thread.
const AHEAD_BYTES_MAX: usize = 192 << 10;

type RangeList = Vec<Range<u64>>;

/// Reads the wanted ranges in their order.
pub struct RangeReader {
    wanted: VecDeque<Range<u64>>,
    from: FlightsOrStream,
}

enum FlightsOrStream {
    /// Flights that are sorted by offset and do not overlap. Together they contain all wanted
    /// bytes.
    Flights(Vec<Arc<RangeFlight<Error>>>),
    /// A stream of parts. Each part belongs to one range only.
    Bounded(WindowedStream),
}

impl RangeReader {
    /// Returns the available bytes at the current position. All returned bytes belong to one range.
    /// The result is empty after the last range. Cancel safe.
    ///
    /// # Errors
    /// An error of the object or the storage. Bytes that were returned before the error are
    /// correct. No bytes follow the error.
    pub async fn next_bytes(&mut self) -> Result<Vec<Bytes>, Error> {
        let Some(range) = self.wanted.front_mut() else {
            return Ok(Vec::new());
        };
        let slices = match &mut self.from {
            FlightsOrStream::Flights(flights) => {
                let place = flights.partition_point(|flight| flight.range().end <= range.start);
                let flight = flights.get(place).ok_or(Error::Changed)?;
                let end = flight.range().end.min(range.end);
                flight.read_available(&(range.start..end)).await?
            }
            FlightsOrStream::Bounded(passing) => vec![passing.next_bytes().await?],
        };
        range.start += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        if range.start >= range.end {
            self.wanted.pop_front();
        }
        Ok(slices)
    }

    /// Waits for the first byte.
    async fn wait_for_data(&mut self) -> Result<(), Error> {
        let Some(range) = self.wanted.front() else {
            return Ok(());
        };
        match &mut self.from {
            FlightsOrStream::Flights(flights) => {
                let holds =
                    |flight: &&Arc<RangeFlight<Error>>| flight.range().contains(&range.start);
                let flight = flights.iter().find(holds).ok_or(Error::Changed)?;
                flight
                    .read_available(&(range.start..range.start + 1))
                    .await?;
            }
            FlightsOrStream::Bounded(passing) => passing.wait_for_data().await?,
        }
        Ok(())
    }
}

impl RemoteObject {
    /// Reads the wanted ranges with as few requests as possible. `along` contains ranges that are
    /// likely to be requested next. A range of `along` is also read if it is close to a wanted
    /// range.
    ///
    /// # Errors
    /// An error of the object or the storage that occurs before the first byte.
    pub async fn open_range_reader(
        self: &Arc<RemoteObject>,
        wanted: Vec<Range<u64>>,
        along: &[Range<u64>],
        reason: RequestReason,
    ) -> Result<RangeReader, Error> {
        wanted
            .iter()
            .try_for_each(|range| self.check_range(range))?;
        let parts = start_reader(self, wanted, along, reason).await;
        parts.inspect_err(|error| self.mark_if_changed(error))
    }

    /// Starts fetching ranges that are likely to be requested next.
    pub fn read_ahead(self: &Arc<RemoteObject>, ranges: &[Range<u64>], along: &[Range<u64>]) {
        let mut all = ranges.iter().chain(along);
        if !all.all(|range| self.check_range(range).is_ok()) {
            return;
        }
        let options = &self.core().options;
        let wanted = ranges.iter().filter(|range| !range.is_empty()).cloned();
        let bytes_max = CACHED_BYTES_MAX.min(options.memory_bytes / 4);
        if let Some(extents) =
            choose_extents(&wanted.collect(), along, options.waste_bytes, bytes_max)
        {
            start_flights(self, &extents, RequestReason::Ahead);
        }
    }
}

async fn start_reader(
    object: &Arc<RemoteObject>,
    wanted: RangeList,
    along: &[Range<u64>],
    reason: RequestReason,
) -> Result<RangeReader, Error> {
    let wanted: VecDeque<_> = wanted
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect();
    let bytes_max = match reason {
        RequestReason::Plain => PLAIN_BYTES_MAX,
        _ => CACHED_BYTES_MAX,
    };
    let options = &object.core().options;
    // Ranges that are not wanted yet are useful only if they can be cached.
    let along = if options.memory_bytes > 0 { along } else { &[] };
    let extents = choose_extents(&wanted, along, options.waste_bytes, bytes_max);
    let flights = extents.and_then(|extents| start_flights(object, &extents, reason));
    let from = match flights {
        Some(flights) => FlightsOrStream::Flights(flights),
        None => {
            FlightsOrStream::Bounded(WindowedStream::start_first_window(object, &wanted, reason))
        }
    };
    let mut parts = RangeReader { wanted, from };
    parts.wait_for_data().await?;
    Ok(parts)
}

/// Returns the flights that contain these extents, and starts to fetch the missing flights. Returns
/// `None` if there is not enough memory for the missing flights.
fn start_flights(
    object: &Arc<RemoteObject>,
    extents: &[Range<u64>],
    reason: RequestReason,
) -> Option<Vec<Arc<RangeFlight<Error>>>> {
    let core = object.core();
    let mut all = Vec::new();
    for extent in extents {
        let cover = core.cache.cover_range(
            object.versioned_key(),
            extent.clone(),
            core.unreserved_bytes(),
        )?;
        for flight in cover.missing {
            let landing = FlightFetch {
                object: object.clone(),
                flight,
            };
            core.spawn_fetch(landing.fetch(reason));
        }
        all.extend(cover.flights);
    }
    Some(all)
}

/// A fetch that fills a flight, and ends the flight even if the fetch is dropped.
struct FlightFetch {
    object: Arc<RemoteObject>,
    flight: Arc<RangeFlight<Error>>,
}

impl FlightFetch {
    async fn fetch(self, reason: RequestReason) {
        let outcome = self.fill_flight(reason).await;
        if let Err(error) = &outcome {
            self.object.mark_if_changed(error);
            // Removes the flight before the error is published, so that a later request starts a
            // new fetch.
            self.cache_or_remove_flight();
        }
        self.flight.end_flight(outcome);
    }

    async fn fill_flight(&self, reason: RequestReason) -> Result<(), Error> {
        let request = self.object.range_request(self.flight.range(), reason);
        let (_, mut stream) = self.object.core().open_stream(request, reason).await?;
        let mut ahead = 0;
        while let Some(bytes) = stream.next_bytes().await? {
            ahead += bytes.len();
            self.flight.append_bytes(bytes);
            if ahead >= AHEAD_BYTES_MAX {
                // Yields to the readers, so that they send the bytes while the bytes are still in
                // the CPU cache. The buffer of these bytes can then be reused.
                ahead = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

impl FlightFetch {
    /// Caches the flight if it is complete, and removes it otherwise.
    fn cache_or_remove_flight(&self) {
        let core = self.object.core();
        core.cache
            .record_flight_end(self.object.versioned_key(), &self.flight);
    }
}

impl Drop for FlightFetch {
    fn drop(&mut self) {
        self.cache_or_remove_flight();
        // This call has no effect if the flight has already ended.
        let ended = Error::Broken("the storage threads have exited".into());
        self.flight.end_flight(Err(ended));
    }
}

/// Chooses extents that contain all of `wanted`. The extents are sorted and do not overlap. They
/// include gaps of up to `waste` bytes. They also include ranges of `along` that are at most
/// `waste` bytes away from another included range. The ranges of `along` are omitted if the total
/// length would exceed `bytes_max` bytes. Returns `None` if the extents exceed `bytes_max` bytes
/// even without `along`.
fn choose_extents(
    wanted: &VecDeque<Range<u64>>,
    along: &[Range<u64>],
    waste: u64,
    bytes_max: u64,
) -> Option<RangeList> {
    let alone = join_ranges(wanted.iter().cloned().collect(), waste);
    let mut together = join_ranges(wanted.iter().chain(along).cloned().collect(), waste);
    let holds =
        |extent: &Range<u64>, one: &Range<u64>| extent.start <= one.start && one.end <= extent.end;
    together.retain(|extent| alone.iter().any(|one| holds(extent, one)));
    [together, alone]
        .into_iter()
        .find(|extents| sum_range_lens(extents) <= bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type RangePairs = Vec<(u64, u64)>;

    fn joined_pairs(wanted: &[(u64, u64)], along: &[(u64, u64)], waste: u64) -> Option<RangePairs> {
        let ranges = |pairs: &[(u64, u64)]| pairs.iter().map(|(a, b)| *a..*b).collect::<Vec<_>>();
        let found = choose_extents(&ranges(wanted).into(), &ranges(along), waste, 1000)?;
        Some(found.iter().map(|range| (range.start, range.end)).collect())
    }

    #[test]
    fn near_ranges_are_one_extent() {
        let wanted = [(0, 10), (15, 20), (40, 50)];
        assert_eq!(joined_pairs(&wanted, &[], 5), Some(vec![(0, 20), (40, 50)]));
        assert_eq!(joined_pairs(&wanted, &[], 20), Some(vec![(0, 50)]));
        assert_eq!(joined_pairs(&wanted, &[], 4), Some(wanted.to_vec()));
    }

    #[test]
    fn additional_ranges_join_but_are_never_fetched_alone() {
        let wanted = [(10, 20), (30, 40)];
        let along = [(0, 10), (20, 30), (40, 45), (200, 300)];
        assert_eq!(joined_pairs(&wanted, &along, 0), Some(vec![(0, 45)]));
        let large = [(20, 30), (40, 1100)];
        assert_eq!(joined_pairs(&wanted, &large, 0), Some(wanted.to_vec()));
        assert_eq!(joined_pairs(&[(0, 2000)], &[], 0), None);
    }

    proptest! {
        #[test]
        fn extents_contain_all_wanted_ranges(
            wanted in prop::collection::vec((0u64..500, 0u64..60), 0..12),
            along in prop::collection::vec((0u64..500, 0u64..60), 0..12),
            waste in 0u64..50,
        ) {
            let ranges = |all: Vec<(u64, u64)>| all.into_iter().map(|(a, n)| a..a + n);
            let wanted: VecDeque<_> = ranges(wanted).collect();
            let along: Vec<_> = ranges(along).collect();
            let found = choose_extents(&wanted, &along, waste, u64::MAX).unwrap();
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
