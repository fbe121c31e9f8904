//! One fetch a key: the first asker leads, all others follow.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Fetches under way. Cheap to clone; all clones are one.
#[derive(Debug)]
pub struct Flights<K, T> {
    table: Arc<Mutex<HashMap<K, Arc<Flight<T>>>>>,
}

/// One fetch. It lands once, with a `T` for all who follow.
#[derive(Debug)]
pub struct Flight<T> {
    landed: watch::Sender<Option<T>>,
    purged: AtomicBool,
}

/// What an asker is to do.
#[derive(Debug)]
pub enum Joined<K: Eq + Hash, T> {
    /// Fetch it.
    Lead(Lead<K, T>),
    /// Wait for somebody else's fetch.
    Follow(Follow<T>),
}

/// The duty to fetch. Dropped without a landing, its followers must look after themselves.
#[derive(Debug)]
pub struct Lead<K: Eq + Hash, T> {
    /// The key that was asked for, and others under which the fetch is found too.
    keys: Vec<K>,
    flight: Arc<Flight<T>>,
    flights: Flights<K, T>,
}

/// Somebody else's fetch.
#[derive(Debug)]
pub struct Follow<T> {
    landed: watch::Receiver<Option<T>>,
}

impl<K, T> Default for Flights<K, T> {
    fn default() -> Flights<K, T> {
        Flights {
            table: Arc::default(),
        }
    }
}

impl<K, T> Clone for Flights<K, T> {
    fn clone(&self) -> Flights<K, T> {
        Flights {
            table: Arc::clone(&self.table),
        }
    }
}

impl<K: Eq + Hash + Clone, T: Clone> Flights<K, T> {
    /// Leads where nobody fetches this key yet, and follows where somebody does.
    pub fn join(&self, key: &K) -> Joined<K, T> {
        let mut table = self.lock();
        if let Some(flight) = table.get(key) {
            let landed = flight.landed.subscribe();
            return Joined::Follow(Follow { landed });
        }
        let flight = Arc::new(Flight {
            landed: watch::Sender::new(None),
            purged: AtomicBool::new(false),
        });
        table.insert(key.clone(), Arc::clone(&flight));
        Joined::Lead(Lead {
            keys: vec![key.clone()],
            flight,
            flights: self.clone(),
        })
    }

    /// Fetches under way.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Nothing is being fetched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those who wait for somebody else's fetch to land.
    pub fn followers(&self) -> usize {
        let table = self.lock();
        // A fetch of several names is one.
        let flights: HashMap<_, _> = table.values().map(|one| (Arc::as_ptr(one), one)).collect();
        let counts = flights.values().map(|one| one.landed.receiver_count());
        counts.sum()
    }

    /// Marks the fetches that `which` names (by key, and by what they landed with): their objects
    /// must not be kept, and nobody joins them any more. Returns how many there were.
    pub fn purge(&self, mut which: impl FnMut(&K, Option<&T>) -> bool) -> usize {
        let (mut table, mut count) = (self.lock(), 0);
        table.retain(|key, flight| {
            let hit = which(key, flight.landed.borrow().as_ref());
            if hit && !flight.purged.swap(true, Ordering::AcqRel) {
                count += 1;
            }
            !hit
        });
        count
    }
}

impl<K, T> Flights<K, T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Flight<T>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, T> Lead<K, T> {
    /// What is fetched turns out to be found under this key too, unless something else is being
    /// fetched for it already.
    pub fn also(&mut self, key: &K) {
        let mut table = self.flights.lock();
        if !self.purged() && !table.contains_key(key) {
            table.insert(key.clone(), Arc::clone(&self.flight));
            self.keys.push(key.clone());
        }
    }
}

impl<K: Eq + Hash, T> Lead<K, T> {
    /// Tells all followers, those to come included, until this lead is dropped.
    pub fn land(&self, with: T) {
        self.flight.landed.send_replace(Some(with));
    }

    /// What is fetched was purged meanwhile: it must not be kept.
    pub fn purged(&self) -> bool {
        self.flight.purged.load(Ordering::Acquire)
    }

    /// Nobody joins from now on; those who have stay.
    pub fn close(&self) {
        let mut table = self.flights.lock();
        let ours = |flight: &Arc<Flight<T>>| Arc::ptr_eq(flight, &self.flight);
        for key in &self.keys {
            if table.get(key).is_some_and(ours) {
                table.remove(key);
            }
        }
    }
}

impl<K: Eq + Hash, T> Drop for Lead<K, T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Clone> Follow<T> {
    /// Waits for the landing; `None` when there was none.
    pub async fn landed(mut self) -> Option<T> {
        let landed = self.landed.wait_for(Option::is_some).await.ok()?;
        landed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn lead(joined: Joined<u8, u8>) -> Lead<u8, u8> {
        match joined {
            Joined::Lead(lead) => lead,
            Joined::Follow(_) => panic!("somebody leads already"),
        }
    }

    fn follow(joined: Joined<u8, u8>) -> Follow<u8> {
        match joined {
            Joined::Follow(follow) => follow,
            Joined::Lead(_) => panic!("nobody leads"),
        }
    }

    #[test]
    fn the_first_leads_and_all_land_together() {
        let flights = Flights::default();
        let first = lead(flights.join(&1));
        let (waiting, late) = (follow(flights.join(&1)), flights.join(&1));
        let other = lead(flights.join(&2));
        assert_eq!((flights.len(), flights.followers()), (2, 2));
        first.land(9);
        assert_eq!(poll(waiting.landed()), Poll::Ready(Some(9)));
        assert_eq!(poll(follow(late).landed()), Poll::Ready(Some(9)));
        assert_eq!(
            poll(follow(flights.join(&1)).landed()),
            Poll::Ready(Some(9))
        );
        drop((first, other));
        assert!(flights.is_empty());
        lead(flights.join(&1));
    }

    #[test]
    fn a_fetch_may_have_several_names_and_leaves_none_behind() {
        let flights = Flights::default();
        let (mut first, other) = (lead(flights.join(&1)), lead(flights.join(&3)));
        first.also(&2);
        first.also(&3);
        first.land(9);
        let second = follow(flights.join(&2));
        assert_eq!(flights.followers(), 1);
        assert_eq!(poll(second.landed()), Poll::Ready(Some(9)));
        drop(first);
        lead(flights.join(&2));
        follow(flights.join(&3));
        drop(other);
        assert!(flights.is_empty());
    }

    #[test]
    fn a_lead_that_is_lost_tells_its_followers() {
        let flights = Flights::default();
        let first = lead(flights.join(&1));
        let waiting = follow(flights.join(&1));
        drop(first);
        assert_eq!(poll(waiting.landed()), Poll::Ready(None));
    }

    #[test]
    fn a_purged_flight_is_not_joined_and_does_not_remove_its_successor() {
        let flights = Flights::default();
        let old = lead(flights.join(&1));
        assert_eq!(
            flights.purge(|key, landed| *key == 1 && landed.is_none()),
            1
        );
        assert!(old.purged());
        let new = lead(flights.join(&1));
        assert!(!new.purged());
        drop(old);
        follow(flights.join(&1));
    }
}
