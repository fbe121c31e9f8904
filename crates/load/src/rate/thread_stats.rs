//! The counts of one generator thread since its last report.

use super::request_target::{RequestKind, RequestTarget};
use super::scheduled_request::{ExchangeTiming, ScheduledRequest};
use crate::client::{FailureKind, RequestFailure};
use crate::result::{FinishedRequest, LatencyHistogram, RequestRecord, RequestStats};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A thread's report of about one second.
#[derive(Default)]
pub(crate) struct RateThreadReport {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// Seconds since the run started.
    pub(crate) second: u64,
    /// Counts by step and kind.
    pub(crate) cells: BTreeMap<(u32, RequestKind), Box<RequestStats>>,
    /// Requests that became due, by step.
    pub(crate) due: BTreeMap<u32, u64>,
    pub(crate) unsent: u64,
    pub(crate) abandoned: u64,
    pub(crate) lag: LatencyHistogram,
    pub(crate) connect: LatencyHistogram,
    pub(crate) examples: BTreeMap<FailureKind, String>,
    pub(crate) records: Vec<RequestRecord>,
    /// Open connections of all threads.
    pub(crate) open: u64,
    /// The thread's final report.
    pub(crate) last: bool,
}

/// Counts of one thread, as requests end.
pub(super) struct RateThreadStats {
    pub(super) report: Box<RateThreadReport>,
    start: Instant,
    keep_records: bool,
}

impl RateThreadStats {
    pub(super) fn new(start: Instant, keep_records: bool) -> RateThreadStats {
        RateThreadStats {
            report: Box::default(),
            start,
            keep_records,
        }
    }

    /// Sets the start of the run, from which due times count.
    pub(super) fn set_start(&mut self, start: Instant) {
        self.start = start;
    }

    /// Returns the counts since the last report and resets them.
    pub(super) fn take_report(&mut self, thread: usize, second: u64) -> Box<RateThreadReport> {
        let mut report = std::mem::take(&mut self.report);
        report.thread = thread;
        report.second = second;
        report
    }

    pub(super) fn count_due(&mut self, step: u32) {
        *self.report.due.entry(step).or_default() += 1;
    }

    /// Records how late the generator started a request that had a free connection.
    pub(super) fn record_lag(&mut self, lag: Duration) {
        self.report.lag.record(lag);
    }

    pub(super) fn record_connect(&mut self, took: Duration) {
        self.report.connect.record(took);
    }

    /// Counts a request that completed or failed.
    pub(super) fn count_request(
        &mut self,
        request: &ScheduledRequest,
        target: &RequestTarget,
        timing: &ExchangeTiming,
        failure: Option<&RequestFailure>,
    ) {
        let kind = target.kind;
        let finished = FinishedRequest {
            due: self.start + Duration::from_nanos(request.due_ns),
            sent: timing.sent,
            first_byte: timing.first,
            end: timing.end,
            status: timing.status,
            bytes: timing.bytes,
            failure: failure.map(|failure| failure.fault),
            late: request.late,
        };
        let cell = self.report.cells.entry((request.step, kind)).or_default();
        cell.count_request(&finished);
        if let Some(failure) = failure {
            let examples = &mut self.report.examples;
            examples
                .entry(failure.fault)
                .or_insert_with(|| failure.to_string());
        }
        if self.keep_records {
            let record = {
                let of = (&target.url, None);
                finished.to_record(request.n, request.step, kind, self.start, of)
            };
            self.report.records.push(record);
        }
    }
}
