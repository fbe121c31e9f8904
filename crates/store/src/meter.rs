//! What was asked of the storage, and why.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why bytes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// To find what a path names: a look, a list.
    Look,
    /// A server manifest.
    Manifest,
    /// To build an index.
    Index,
    /// To answer with a segment.
    Segment,
    /// To answer with a file as it is.
    Plain,
    /// A segment that is likely to be asked for next.
    Ahead,
    /// The same again, because the first request is slow.
    Hedge,
    /// The same again, because it failed.
    Retry,
}

impl Reason {
    /// All reasons, for whoever prints counters.
    pub const ALL: [Reason; 8] = [
        Reason::Look,
        Reason::Manifest,
        Reason::Index,
        Reason::Segment,
        Reason::Plain,
        Reason::Ahead,
        Reason::Hedge,
        Reason::Retry,
    ];

    /// As metrics label it.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Look => "look",
            Reason::Manifest => "manifest",
            Reason::Index => "index",
            Reason::Segment => "segment",
            Reason::Plain => "plain",
            Reason::Ahead => "ahead",
            Reason::Hedge => "hedge",
            Reason::Retry => "retry",
        }
    }
}

/// Counts by reason. One range of one object is one request, however many system calls it takes.
#[derive(Debug, Default)]
pub struct Meter {
    rows: [Row; Reason::ALL.len()],
    piped: AtomicU64,
}

#[derive(Debug, Default)]
struct Row {
    requests: AtomicU64,
    bytes: AtomicU64,
    waits: AtomicU64,
}

impl Meter {
    /// A request for `bytes` bytes.
    pub fn count(&self, reason: Reason, bytes: u64) {
        let row = &self.rows[reason as usize];
        row.requests.fetch_add(1, Relaxed);
        row.bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes that came for a request counted before.
    pub(crate) fn count_bytes(&self, reason: Reason, bytes: u64) {
        let row = &self.rows[reason as usize];
        row.bytes.fetch_add(bytes, Relaxed);
    }

    /// A request whose bytes were not in memory, so that a thread waited for the storage.
    pub fn count_wait(&self, reason: Reason) {
        self.rows[reason as usize].waits.fetch_add(1, Relaxed);
    }

    /// Bytes, counted before, that went into a pipe uncopied.
    pub(crate) fn count_piped(&self, bytes: u64) {
        self.piped.fetch_add(bytes, Relaxed);
    }

    /// Bytes so far that went into pipes.
    pub fn piped_bytes(&self) -> u64 {
        self.piped.load(Relaxed)
    }

    /// Requests so far.
    pub fn requests(&self, reason: Reason) -> u64 {
        self.rows[reason as usize].requests.load(Relaxed)
    }

    /// Bytes so far.
    pub fn bytes(&self, reason: Reason) -> u64 {
        self.rows[reason as usize].bytes.load(Relaxed)
    }

    /// Requests so far that had to wait for the storage.
    pub fn waits(&self, reason: Reason) -> u64 {
        self.rows[reason as usize].waits.load(Relaxed)
    }
}
