//! A scheduled request, and the timing of its exchange.

use crate::client::MemorySink;
use std::time::Instant;

/// A request that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScheduledRequest {
    /// Number of the request in the run.
    pub(super) n: u64,
    /// Due time of the request, in nanoseconds since the start of the run.
    pub(super) due_ns: u64,
    /// Index of the profile step in which the request is due.
    pub(super) step: u32,
    /// No connection was free when the request was due.
    pub(super) late: bool,
}

/// Status, size and times of one exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeOutcome {
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) sent: Option<Instant>,
    pub(super) first: Option<Instant>,
    pub(super) end: Instant,
}

impl ExchangeOutcome {
    /// Adds the received part of a response that failed or timed out.
    pub(super) fn add_incomplete_response(&mut self, sink: &MemorySink) {
        self.bytes = self.bytes.max(sink.count);
        if self.status == 0 {
            self.status = sink.status;
        }
    }
}
