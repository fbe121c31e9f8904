//! Ranges of objects in memory, each fetched once however many ask, and kept while there is room.
//!
//! [`Cache::cover`] names the [`Flight`]s that together hold a range: those that are there or on
//! their way, and new ones for what is missing, which the caller sets going. A flight is read
//! while it still grows. Imports nothing from its neighbours.

mod flight;
mod holding;

pub(crate) use flight::Flight;
pub(crate) use holding::{Held, Holding};

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ranges of objects named by `K`; fetching them fails with `E`.
pub(crate) struct Cache<K, E> {
    bytes_max: u64,
    /// Of all flights, those included that are not kept any more but still read.
    holding: Holding,
    inner: Mutex<Inner<K, E>>,
}

struct Inner<K, E> {
    /// Per object, its flights by where they begin. They never overlap.
    objects: HashMap<K, BTreeMap<u64, Slot<E>>>,
    /// Whole flights by when they were last used.
    order: BTreeMap<u64, (K, u64)>,
    clock: u64,
    bytes: u64,
}

struct Slot<E> {
    flight: Arc<Flight<E>>,
    /// When last used, for those that are whole: their place in `order`.
    used: Option<u64>,
}

/// What holds a range.
pub(crate) struct Cover<E> {
    /// In order; together they hold the range.
    pub(crate) flights: Vec<Arc<Flight<E>>>,
    /// Those of them that are new, for the caller to fetch.
    pub(crate) missing: Vec<Arc<Flight<E>>>,
}

impl<K: Hash + Eq + Clone, E: Clone> Cache<K, E> {
    /// At most `bytes_max` bytes are kept; what is on its way comes on top.
    pub(crate) fn new(bytes_max: u64) -> Cache<K, E> {
        let inner = Mutex::new(Inner {
            objects: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            bytes: 0,
        });
        Cache {
            bytes_max,
            holding: Holding::default(),
            inner,
        }
    }

    /// Bytes in memory, or on their way there.
    pub(crate) fn holding(&self) -> &Holding {
        &self.holding
    }

    /// The flights that hold `range` of an object, with new ones for what nobody fetched yet.
    /// `None` if what is missing is over `room` bytes.
    pub(crate) fn cover(&self, key: &K, range: Range<u64>, room: u64) -> Option<Cover<E>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.missing(key, &range) > room {
            return None;
        }
        let slots = inner.objects.entry(key.clone()).or_default();
        let first = slots.range(..=range.start).next_back().map(|(at, _)| *at);
        let mut cover = Cover {
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
                cover.add(at..start, &self.holding);
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
            cover.add(at..range.end, &self.holding);
        }
        for flight in &cover.missing {
            let slot = Slot {
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

    /// Whether anything of `range` of an object is there, or on its way.
    pub(crate) fn has(&self, key: &K, range: &Range<u64>) -> bool {
        self.lock().missing(key, range) < range.end - range.start
    }

    /// A flight has ended: it is kept if it is whole and there is room, else forgotten.
    pub(crate) fn ended(&self, key: &K, flight: &Arc<Flight<E>>) {
        let range = flight.range();
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(slots) = inner.objects.get_mut(key) else {
            return;
        };
        let ours = |slot: &Slot<E>| Arc::ptr_eq(&slot.flight, flight);
        if !slots.get(&range.start).is_some_and(ours) {
            return;
        }
        if flight.is_whole() {
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
        while inner.bytes > self.bytes_max
            && let Some((_, (key, start))) = inner.order.pop_first()
        {
            inner.remove(&key, start);
        }
    }

    /// Forgets all of an object: it has changed.
    pub(crate) fn forget(&self, key: &K) {
        let mut inner = self.lock();
        for (_, slot) in inner.objects.remove(key).unwrap_or_default() {
            if let Some(used) = slot.used {
                inner.order.remove(&used);
                let range = slot.flight.range();
                inner.bytes -= range.end - range.start;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K, E>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, E: Clone> Inner<K, E> {
    /// How many bytes of a range nobody fetched yet.
    fn missing(&self, key: &K, range: &Range<u64>) -> u64 {
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

impl<E: Clone> Cover<E> {
    fn add(&mut self, range: Range<u64>, holding: &Holding) {
        let held = holding.hold(range.end - range.start);
        let flight = Arc::new(Flight::new(range, held));
        self.flights.push(flight.clone());
        self.missing.push(flight);
    }
}

#[cfg(test)]
mod tests;
