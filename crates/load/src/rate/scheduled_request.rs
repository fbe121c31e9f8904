//! A request of the schedule, and when its exchange happened.

use std::time::Instant;

/// A request that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScheduledRequest {
    /// Its number in the run.
    pub(super) n: u64,
    /// Its due time, in nanoseconds since the run started.
    pub(super) due_ns: u64,
    /// Index of the profile's step.
    pub(super) step: u32,
    /// No connection was free at its due time.
    pub(super) late: bool,
}

/// Status, size and times of one exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeTiming {
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) sent: Option<Instant>,
    pub(super) first: Option<Instant>,
    pub(super) end: Instant,
}
