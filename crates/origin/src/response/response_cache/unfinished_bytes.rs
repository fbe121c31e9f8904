//! The memory of segments that are stored once their last byte is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that streams hold until their segment is complete. They are bounded, because any number of
/// clients may stop reading before the end of a segment.
pub(crate) struct UnfinishedBytes {
    held: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A reservation of bytes. Dropping it releases them.
pub(crate) struct UnfinishedReservation {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl UnfinishedBytes {
    pub(crate) fn new(bytes_max: u64) -> UnfinishedBytes {
        UnfinishedBytes {
            held: Arc::default(),
            bytes_max,
        }
    }

    /// Reserves the bytes of a segment; `None` if others hold too many.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<UnfinishedReservation> {
        let add = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.held.fetch_update(Relaxed, Relaxed, add).ok()?;
        let held = self.held.clone();
        Some(UnfinishedReservation { held, bytes })
    }
}

impl Drop for UnfinishedReservation {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_stop_before_the_end_hold_bounded_memory() {
        let unfinished = UnfinishedBytes::new(100);
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
