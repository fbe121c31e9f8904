//! How many bytes are held in memory, by whomever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes held, counted where they are let go.
#[derive(Debug, Default, Clone)]
pub(crate) struct Holding(Arc<AtomicU64>);

/// Some of them: they count until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of: Holding,
    bytes: u64,
}

impl Holding {
    /// Counts `bytes` from now on, whether they came already or not.
    pub(crate) fn hold(&self, bytes: u64) -> Held {
        self.0.fetch_add(bytes, Relaxed);
        Held {
            of: self.clone(),
            bytes,
        }
    }

    /// All of them now.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Relaxed);
    }
}
