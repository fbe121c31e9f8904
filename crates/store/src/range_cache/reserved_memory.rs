//! Counts the memory that ranges reserve.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of bytes that all leases reserve.
#[derive(Debug, Default, Clone)]
pub(crate) struct ReservedMemory(Arc<AtomicU64>);

/// A reservation of memory. It is released when the lease is dropped.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    of: ReservedMemory,
    bytes: u64,
}

impl ReservedMemory {
    /// Reserves memory for `bytes` bytes, even if these bytes have not been received yet.
    pub(crate) fn count_reserved(&self, bytes: u64) -> MemoryLease {
        self.0.fetch_add(bytes, Relaxed);
        MemoryLease {
            of: self.clone(),
            bytes,
        }
    }

    /// The number of bytes that all leases reserve together.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Relaxed);
    }
}
