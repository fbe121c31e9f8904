//! Limits the memory that segments hold before they are complete and enter the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that streams hold until their segments are complete. The sum is limited, because any
/// number of clients may stop reading before the end of a segment.
pub(crate) struct UnfinishedSegmentBudget {
    held: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A reservation of bytes. Dropping the reservation releases the bytes.
pub(crate) struct UnfinishedSegmentReservation {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl UnfinishedSegmentBudget {
    pub(crate) fn new(bytes_max: u64) -> UnfinishedSegmentBudget {
        UnfinishedSegmentBudget {
            held: Arc::default(),
            bytes_max,
        }
    }

    /// Reserves the bytes of a segment. Returns `None` if all reservations together would exceed
    /// the limit.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<UnfinishedSegmentReservation> {
        let add = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.held.fetch_update(Relaxed, Relaxed, add).ok()?;
        let held = self.held.clone();
        Some(UnfinishedSegmentReservation { held, bytes })
    }
}

impl Drop for UnfinishedSegmentReservation {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_stop_before_the_end_hold_bounded_memory() {
        let unfinished = UnfinishedSegmentBudget::new(100);
        let first = unfinished.reserve(60).unwrap();
        assert!(unfinished.reserve(41).is_none());
        let second = unfinished.reserve(40).unwrap();
        assert!(unfinished.reserve(1).is_none());
        drop(first);
        assert!(unfinished.reserve(60).is_some());
        drop(second);
        assert!(unfinished.reserve(100).is_some());
        assert!(unfinished.reserve(u64::MAX).is_none());
    }
}
