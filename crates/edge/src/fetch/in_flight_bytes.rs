//! The total number of received bytes of all bodies that are being fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the received bytes of all bodies that are being fetched and may be stored.
#[derive(Debug, Clone, Default)]
pub struct InFlightBytes(Arc<AtomicU64>);

/// One body's contribution to [`InFlightBytes`], which is subtracted when this value is dropped.
pub(super) struct BodyByteCount {
    total: InFlightBytes,
    bytes: u64,
}

impl InFlightBytes {
    /// Returns the total number of bytes over all bodies.
    pub fn total_bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn start_body_byte_count(&self) -> BodyByteCount {
        BodyByteCount {
            total: self.clone(),
            bytes: 0,
        }
    }
}

impl BodyByteCount {
    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.total.0.fetch_add(bytes, Relaxed);
    }
}

impl Drop for BodyByteCount {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.bytes, Relaxed);
    }
}
