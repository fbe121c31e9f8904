//! Coalesces fetches. The first request for a key becomes the leader and performs the fetch.
//! Requests for the same key that arrive during the fetch become followers and wait for the result.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use trace::{SpanKind, TraceContext};

/// Name of the span in which a follower waits.
const WAIT_SPAN: &str = "wait";

/// The table of running fetches. Clones are cheap and share the table.
#[derive(Debug)]
pub struct FetchTable<K, T> {
    table: Arc<Mutex<HashMap<K, Arc<SharedFetch<T>>>>>,
}

/// A running fetch, with one result for all followers.
#[derive(Debug)]
struct SharedFetch<T> {
    result: watch::Sender<Option<FetchResult<T>>>,
    purged: AtomicBool,
}

/// The result of a fetch, and the span of the leader. The spans of waiting followers are linked to
/// the leader's span.
#[derive(Debug, Clone)]
struct FetchResult<T> {
    value: T,
    leader_span: Option<TraceContext>,
}

/// The role of a request.
#[derive(Debug)]
pub enum LeadOrFollow<K: Eq + Hash, T> {
    /// The request must perform the fetch.
    Lead(FetchLeader<K, T>),
    /// The request waits for a running fetch.
    Follow(FetchFollower<T>),
}

/// The role of the request that must perform the fetch. If the leader is dropped before it
/// publishes a result, the followers get `None`.
#[derive(Debug)]
pub struct FetchLeader<K: Eq + Hash, T> {
    /// The requested key, and the keys that were added with [`FetchLeader::add_key`].
    keys: Vec<K>,
    flight: Arc<SharedFetch<T>>,
    flights: FetchTable<K, T>,
    span: Option<TraceContext>,
}

/// Waits for a running fetch.
#[derive(Debug)]
pub struct FetchFollower<T> {
    result: watch::Receiver<Option<FetchResult<T>>>,
}

impl<K, T> Default for FetchTable<K, T> {
    fn default() -> FetchTable<K, T> {
        FetchTable {
            table: Arc::default(),
        }
    }
}

impl<K, T> Clone for FetchTable<K, T> {
    fn clone(&self) -> FetchTable<K, T> {
        FetchTable {
            table: Arc::clone(&self.table),
        }
    }
}

impl<K: Eq + Hash + Clone, T: Clone> FetchTable<K, T> {
    /// Starts a new fetch of this key as its leader, or joins a running fetch as a follower.
    pub fn lead_or_join(&self, key: &K) -> LeadOrFollow<K, T> {
        let mut table = self.lock();
        if let Some(flight) = table.get(key) {
            let result = flight.result.subscribe();
            return LeadOrFollow::Follow(FetchFollower { result });
        }
        let flight = Arc::new(SharedFetch {
            result: watch::Sender::new(None),
            purged: AtomicBool::new(false),
        });
        table.insert(key.clone(), Arc::clone(&flight));
        LeadOrFollow::Lead(FetchLeader {
            keys: vec![key.clone()],
            flight,
            flights: self.clone(),
            span: None,
        })
    }

    /// The number of keys with a running fetch.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns `true` if no fetch is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of followers that wait for a result.
    pub fn total_follower_count(&self) -> usize {
        let table = self.lock();
        // Counts the followers of each fetch once, because a fetch may be in the table under
        // several keys.
        let flights: HashMap<_, _> = table.values().map(|one| (Arc::as_ptr(one), one)).collect();
        let counts = flights.values().map(|one| one.result.receiver_count());
        counts.sum()
    }

    /// Marks as purged each fetch that `which` selects by key and result. The object of such a
    /// fetch is not stored, and no further request joins the fetch under the selected key. Returns
    /// the number of fetches that were newly marked.
    pub fn mark_purged(&self, mut which: impl FnMut(&K, Option<&T>) -> bool) -> usize {
        let (mut table, mut count) = (self.lock(), 0);
        table.retain(|key, flight| {
            let result = flight.result.borrow();
            let hit = which(key, result.as_ref().map(|result| &result.value));
            if hit && !flight.purged.swap(true, Ordering::AcqRel) {
                count += 1;
            }
            !hit
        });
        count
    }
}

impl<K, T> FetchTable<K, T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<SharedFetch<T>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, T> FetchLeader<K, T> {
    /// Adds another key to this fetch. Does nothing if the fetch was purged, or if another fetch of
    /// `key` is already running.
    pub fn add_key(&mut self, key: &K) {
        let mut table = self.flights.lock();
        if !self.is_purged() && !table.contains_key(key) {
            table.insert(key.clone(), Arc::clone(&self.flight));
            self.keys.push(key.clone());
        }
    }
}

impl<K: Eq + Hash, T> FetchLeader<K, T> {
    /// Sets the span of the fetch. The spans of followers are linked to this span.
    pub fn set_span(&mut self, span: Option<TraceContext>) {
        self.span = span;
    }

    /// Publishes the result to all current followers, and to followers that join later.
    pub fn publish_result(&self, value: T) {
        self.flight.result.send_replace(Some(FetchResult {
            value,
            leader_span: self.span,
        }));
    }

    /// Returns whether the object was purged during the fetch and must not be stored.
    pub fn is_purged(&self) -> bool {
        self.flight.purged.load(Ordering::Acquire)
    }

    /// Prevents further requests from joining the fetch. Current followers still get the result.
    pub fn refuse_new_followers(&self) {
        let mut table = self.flights.lock();
        let is_own = |flight: &Arc<SharedFetch<T>>| Arc::ptr_eq(flight, &self.flight);
        for key in &self.keys {
            if table.get(key).is_some_and(is_own) {
                table.remove(key);
            }
        }
    }
}

impl<K: Eq + Hash, T> Drop for FetchLeader<K, T> {
    fn drop(&mut self) {
        self.refuse_new_followers();
    }
}

impl<T: Clone> FetchFollower<T> {
    /// Waits for the result. Returns `None` if the leader was dropped without a result. If the
    /// request is traced, the wait is recorded as a span.
    pub async fn wait_for_result(mut self) -> Option<T> {
        let mut span = trace::start_span(WAIT_SPAN, SpanKind::Internal);
        let result = self.result.wait_for(Option::is_some).await.ok()?;
        let FetchResult { value, leader_span } = result.as_ref()?;
        if let (Some(span), Some(leader)) = (&mut span, leader_span) {
            span.set_link(*leader);
        }
        Some(value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn expect_leader(joined: LeadOrFollow<u8, u8>) -> FetchLeader<u8, u8> {
        match joined {
            LeadOrFollow::Lead(lead) => lead,
            LeadOrFollow::Follow(_) => panic!("another request leads already"),
        }
    }

    fn expect_follower(joined: LeadOrFollow<u8, u8>) -> FetchFollower<u8> {
        match joined {
            LeadOrFollow::Follow(follow) => follow,
            LeadOrFollow::Lead(_) => panic!("this request must follow"),
        }
    }

    #[test]
    fn the_first_request_leads_and_all_get_its_result() {
        let flights = FetchTable::default();
        let first = expect_leader(flights.lead_or_join(&1));
        let (waiting, late) = (
            expect_follower(flights.lead_or_join(&1)),
            flights.lead_or_join(&1),
        );
        let other = expect_leader(flights.lead_or_join(&2));
        assert_eq!((flights.len(), flights.total_follower_count()), (2, 2));
        first.publish_result(9);
        assert_eq!(poll_once(waiting.wait_for_result()), Poll::Ready(Some(9)));
        assert_eq!(
            poll_once(expect_follower(late).wait_for_result()),
            Poll::Ready(Some(9))
        );
        assert_eq!(
            poll_once(expect_follower(flights.lead_or_join(&1)).wait_for_result()),
            Poll::Ready(Some(9))
        );
        drop((first, other));
        assert!(flights.is_empty());
        expect_leader(flights.lead_or_join(&1));
    }

    #[test]
    fn a_fetch_may_have_several_keys_and_removes_them_all() {
        let flights = FetchTable::default();
        let (mut first, other) = (
            expect_leader(flights.lead_or_join(&1)),
            expect_leader(flights.lead_or_join(&3)),
        );
        first.add_key(&2);
        first.add_key(&3);
        first.publish_result(9);
        let second = expect_follower(flights.lead_or_join(&2));
        assert_eq!(flights.total_follower_count(), 1);
        assert_eq!(poll_once(second.wait_for_result()), Poll::Ready(Some(9)));
        drop(first);
        expect_leader(flights.lead_or_join(&2));
        expect_follower(flights.lead_or_join(&3));
        drop(other);
        assert!(flights.is_empty());
    }

    #[test]
    fn followers_wake_when_their_leader_is_dropped() {
        let flights = FetchTable::default();
        let first = expect_leader(flights.lead_or_join(&1));
        let waiting = expect_follower(flights.lead_or_join(&1));
        drop(first);
        assert_eq!(poll_once(waiting.wait_for_result()), Poll::Ready(None));
    }

    #[test]
    fn a_purged_fetch_is_not_joined_and_does_not_remove_its_successor() {
        let flights = FetchTable::default();
        let old = expect_leader(flights.lead_or_join(&1));
        assert_eq!(
            flights.mark_purged(|key, result| *key == 1 && result.is_none()),
            1
        );
        assert!(old.is_purged());
        let new = expect_leader(flights.lead_or_join(&1));
        assert!(!new.is_purged());
        drop(old);
        expect_follower(flights.lead_or_join(&1));
    }
}
