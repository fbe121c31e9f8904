//! A cache of object ranges in memory. Each range is fetched once for all clients.
//!
//! A [`RangeFlight`] is a range that is cached or being received. It can be read while it is
//! received. [`RangeCache::cover_range`] returns the flights that together contain a requested
//! range. For the missing parts, this function creates new flights, which the caller must fetch.
//!
//! This module imports nothing from the other modules of the crate.

mod range_flight;
mod reserved_memory;

pub(crate) use range_flight::RangeFlight;
pub(crate) use reserved_memory::{MemoryLease, ReservedMemory};

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A cache of ranges of objects. `K` is the type of an object's key, and `E` is the error type of a
/// failed fetch.
pub(crate) struct RangeCache<K, E> {
    bytes_max: u64,
    /// While this flag is set, nothing is cached.
    is_suspended: Arc<AtomicBool>,
    /// The memory of all flights, including flights that were removed from the cache but still have
    /// readers.
    reserved_memory: ReservedMemory,
    inner: Mutex<RangeCacheState<K, E>>,
}

struct RangeCacheState<K, E> {
    /// The flights of each object, keyed by start offset. Flights of one object never overlap.
    objects: HashMap<K, BTreeMap<u64, RangeCacheEntry<E>>>,
    /// Complete flights in the order of their last use. Each value is the object's key and the
    /// flight's start offset.
    order: BTreeMap<u64, (K, u64)>,
    clock: u64,
    bytes: u64,
}

struct RangeCacheEntry<E> {
    flight: Arc<RangeFlight<E>>,
    /// The logical time of the last use of a complete flight. It is the flight's key in `order`.
    used: Option<u64>,
}

/// The flights that contain a range.
pub(crate) struct FlightsCoveringRange<E> {
    /// All flights, sorted by start offset. Together they contain the range.
    pub(crate) flights: Vec<Arc<RangeFlight<E>>>,
    /// The new flights among `flights`, which the caller must fetch.
    pub(crate) missing: Vec<Arc<RangeFlight<E>>>,
}

impl<K: Hash + Eq + Clone, E: Clone> RangeCache<K, E> {
    /// Creates a cache of at most `bytes_max` bytes. Ranges that are still being received do not
    /// count toward this limit. While `is_suspended` is set, the cache is emptied whenever a flight
    /// ends.
    pub(crate) fn new(bytes_max: u64, is_suspended: Arc<AtomicBool>) -> RangeCache<K, E> {
        let inner = Mutex::new(RangeCacheState {
            objects: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            bytes: 0,
        });
        RangeCache {
            bytes_max,
            is_suspended,
            reserved_memory: ReservedMemory::default(),
            inner,
        }
    }

    /// The memory of all ranges, including ranges that are still being received.
    pub(crate) fn reserved_memory(&self) -> &ReservedMemory {
        &self.reserved_memory
    }

    /// Returns the flights that contain `range` of an object. Returns `None` if the missing parts
    /// together exceed `room` bytes.
    pub(crate) fn cover_range(
        &self,
        key: &K,
        range: Range<u64>,
        room: u64,
    ) -> Option<FlightsCoveringRange<E>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.missing_bytes(key, &range) > room {
            return None;
        }
        let slots = inner.objects.entry(key.clone()).or_default();
        let first = slots.range(..=range.start).next_back().map(|(at, _)| *at);
        let mut cover = FlightsCoveringRange {
            flights: Vec::new(),
            missing: Vec::new(),
        };
        let mut at = range.start;
        let from = first.unwrap_or(range.start);
        let known: Vec<_> = slots
            .range(from..range.end)
            .map(|(start, slot)| (*start, slot.flight.clone()))
            .filter(|(_, flight)| flight.range().end > range.start)
            .collect();
        for (start, flight) in known {
            if start > at {
                cover.add_missing(at..start, &self.reserved_memory);
            }
            at = flight.range().end;
            inner.clock += 1;
            if let Some(slot) = slots.get_mut(&start)
                && let Some(used) = &mut slot.used
            {
                inner.order.remove(used);
                *used = inner.clock;
                inner.order.insert(*used, (key.clone(), start));
            }
            cover.flights.push(flight);
        }
        if at < range.end {
            cover.add_missing(at..range.end, &self.reserved_memory);
        }
        for flight in &cover.missing {
            let slot = RangeCacheEntry {
                flight: flight.clone(),
                used: None,
            };
            slots.insert(flight.range().start, slot);
        }
        if slots.is_empty() {
            inner.objects.remove(key);
        }
        Some(cover)
    }

    /// Returns whether any part of `range` is cached or being received.
    pub(crate) fn has_part_of_range(&self, key: &K, range: &Range<u64>) -> bool {
        self.lock().missing_bytes(key, range) < range.end - range.start
    }

    /// Records the end of a flight. A complete flight is cached, and any other flight is removed.
    pub(crate) fn record_flight_end(&self, key: &K, flight: &Arc<RangeFlight<E>>) {
        let range = flight.range();
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(slots) = inner.objects.get_mut(key) else {
            return;
        };
        let is_same = |slot: &RangeCacheEntry<E>| Arc::ptr_eq(&slot.flight, flight);
        if !slots.get(&range.start).is_some_and(is_same) {
            return;
        }
        if flight.has_all_bytes() {
            inner.clock += 1;
            inner.bytes += range.end - range.start;
            inner.order.insert(inner.clock, (key.clone(), range.start));
            if let Some(slot) = slots.get_mut(&range.start) {
                slot.used = Some(inner.clock);
            }
        } else {
            slots.remove(&range.start);
            if slots.is_empty() {
                inner.objects.remove(key);
            }
        }
        let bytes_max = match self.is_suspended.load(Relaxed) {
            true => 0,
            false => self.bytes_max,
        };
        while inner.bytes > bytes_max
            && let Some((_, (key, start))) = inner.order.pop_first()
        {
            inner.remove(&key, start);
        }
    }

    /// Removes all ranges of an object that has changed.
    pub(crate) fn remove_object(&self, key: &K) {
        let mut inner = self.lock();
        for (_, slot) in inner.objects.remove(key).unwrap_or_default() {
            if let Some(used) = slot.used {
                inner.order.remove(&used);
                let range = slot.flight.range();
                inner.bytes -= range.end - range.start;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RangeCacheState<K, E>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, E: Clone> RangeCacheState<K, E> {
    /// Returns how many bytes of a range are neither cached nor being received.
    fn missing_bytes(&self, key: &K, range: &Range<u64>) -> u64 {
        let all = range.end - range.start;
        let Some(slots) = self.objects.get(key) else {
            return all;
        };
        let known = slots.range(..range.end).rev();
        let known = known.map(|(_, slot)| slot.flight.range());
        let known = known.take_while(|known| known.end > range.start);
        let here = known.map(|known| known.end.min(range.end) - known.start.max(range.start));
        all - here.sum::<u64>()
    }

    fn remove(&mut self, key: &K, start: u64) {
        let Some(slots) = self.objects.get_mut(key) else {
            return;
        };
        if let Some(slot) = slots.remove(&start) {
            let range = slot.flight.range();
            self.bytes -= range.end - range.start;
        }
        if slots.is_empty() {
            self.objects.remove(key);
        }
    }
}

impl<E: Clone> FlightsCoveringRange<E> {
    fn add_missing(&mut self, range: Range<u64>, reserved_memory: &ReservedMemory) {
        let held = reserved_memory.count_reserved(range.end - range.start);
        let flight = Arc::new(RangeFlight::new(range, held));
        self.flights.push(flight.clone());
        self.missing.push(flight);
    }
}

#[cfg(test)]
mod tests;
