//! Counts of storage requests by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The reason for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestReason {
    /// Looking up or listing a path.
    Look,
    /// Reading a server manifest.
    Manifest,
    /// Building an index.
    Index,
    /// Reading subtitles or captions inside a film file.
    Text,
    /// A segment for a client.
    Segment,
    /// A file that is sent unchanged.
    Plain,
    /// A segment that is likely to be requested next.
    Ahead,
    /// A second request that is sent because the first request is slow.
    Hedge,
    /// A repeated request after a failure.
    Retry,
}

impl RequestReason {
    /// All reasons, in the order of the metrics.
    pub const ALL: [RequestReason; 9] = [
        RequestReason::Look,
        RequestReason::Manifest,
        RequestReason::Index,
        RequestReason::Text,
        RequestReason::Segment,
        RequestReason::Plain,
        RequestReason::Ahead,
        RequestReason::Hedge,
        RequestReason::Retry,
    ];

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            RequestReason::Look => "look",
            RequestReason::Manifest => "manifest",
            RequestReason::Index => "index",
            RequestReason::Text => "text",
            RequestReason::Segment => "segment",
            RequestReason::Plain => "plain",
            RequestReason::Ahead => "ahead",
            RequestReason::Hedge => "hedge",
            RequestReason::Retry => "retry",
        }
    }
}

/// Counts of requests and bytes by reason. A read of one range of one object counts as one request,
/// even if the read takes several system calls.
#[derive(Debug, Default)]
pub struct Meter {
    rows: [ReasonCounts; RequestReason::ALL.len()],
    piped: AtomicU64,
}

#[derive(Debug, Default)]
struct ReasonCounts {
    requests: AtomicU64,
    bytes: AtomicU64,
    waits: AtomicU64,
}

impl Meter {
    /// Counts a request for `bytes` bytes.
    pub fn count_request(&self, reason: RequestReason, bytes: u64) {
        let row = &self.rows[reason as usize];
        row.requests.fetch_add(1, Relaxed);
        row.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes received for a request that was counted before.
    pub(crate) fn count_bytes(&self, reason: RequestReason, bytes: u64) {
        let row = &self.rows[reason as usize];
        row.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a request for which the caller waited for the storage, because the bytes were not in
    /// memory.
    pub fn count_storage_wait(&self, reason: RequestReason) {
        self.rows[reason as usize].waits.fetch_add(1, Relaxed);
    }

    /// Counts bytes that were spliced into a pipe. [`count_bytes`](Self::count_bytes) also counts
    /// these bytes.
    pub(crate) fn count_piped(&self, bytes: u64) {
        self.piped.fetch_add(bytes, Relaxed);
    }

    /// Bytes that were spliced into pipes.
    pub fn piped_bytes(&self) -> u64 {
        self.piped.load(Relaxed)
    }

    /// Number of requests for `reason`.
    pub fn request_count(&self, reason: RequestReason) -> u64 {
        self.rows[reason as usize].requests.load(Relaxed)
    }

    /// Number of bytes read for `reason`.
    pub fn read_byte_count(&self, reason: RequestReason) -> u64 {
        self.rows[reason as usize].bytes.load(Relaxed)
    }

    /// Number of requests for which the caller waited for the storage, because the bytes were not
    /// in memory.
    pub fn storage_wait_count(&self, reason: RequestReason) -> u64 {
        self.rows[reason as usize].waits.load(Relaxed)
    }
}
