//! Counts of connections, updated when sockets are opened and closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of the connections to a server or to object storage.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    opened: AtomicU64,
    closed: AtomicU64,
    reused: AtomicU64,
    resumed: AtomicU64,
}

impl ConnectionCounts {
    /// Connections opened so far.
    pub fn opened_count(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Connections closed so far, by either end.
    pub fn closed_count(&self) -> u64 {
        self.closed.load(Relaxed)
    }

    /// Requests sent on a connection that had already carried another request.
    pub fn reused_count(&self) -> u64 {
        self.reused.load(Relaxed)
    }

    /// Opened connections that resumed the TLS session of an earlier connection.
    pub fn resumed_count(&self) -> u64 {
        self.resumed.load(Relaxed)
    }

    /// Connections that are open now.
    pub fn open_count(&self) -> u64 {
        let closed = self.closed_count();
        self.opened_count().saturating_sub(closed)
    }

    /// Records that a request is sent on a connection that had already carried another request.
    pub fn record_reuse(&self) {
        self.reused.fetch_add(1, Relaxed);
    }
}

/// Counts a connection as open until the guard is dropped.
#[derive(Debug)]
pub struct ConnectionGuard {
    counts: Arc<ConnectionCounts>,
    id: u64,
}

impl ConnectionGuard {
    pub(crate) fn new(counts: &Arc<ConnectionCounts>) -> ConnectionGuard {
        let id = counts.opened.fetch_add(1, Relaxed) + 1;
        let counts = counts.clone();
        ConnectionGuard { counts, id }
    }

    /// Returns the connection's number, counted from 1 in the order of opening.
    pub fn connection_number(&self) -> u64 {
        self.id
    }

    pub(crate) fn record_resumption(&self) {
        self.counts.resumed.fetch_add(1, Relaxed);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.counts.closed.fetch_add(1, Relaxed);
    }
}
