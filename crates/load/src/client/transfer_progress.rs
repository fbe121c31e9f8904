//! The progress of a response body, readable while the request is in flight.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The progress of one response body. The HTTP client writes the progress, and the caller of the
/// client reads it.
#[derive(Debug, Default)]
pub struct TransferProgress {
    bytes: AtomicU64,
    first_byte: OnceLock<Instant>,
}

impl TransferProgress {
    /// Returns the number of body bytes received so far, including the bodies of redirect
    /// responses.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the arrival time of the first body bytes.
    pub fn first_byte(&self) -> Option<Instant> {
        self.first_byte.get().copied()
    }

    pub(super) fn add_bytes(&self, count: u64) {
        self.first_byte.get_or_init(Instant::now);
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }
}
