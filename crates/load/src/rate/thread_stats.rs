//! The statistics of one generator thread since its last report.

use super::RequestKind;
use super::rate_profile::RateProfile;
use super::request_target::PreparedTarget;
use super::run_metrics::ThreadMetrics;
use super::scheduled_request::{ExchangeOutcome, ScheduledRequest};
use super::shared_run::SharedRun;
use crate::client::{FailureKind, RequestFailure};
use crate::result::{
    FinishedRequest, LatencyHistogram, RequestRecord, RequestStats, UrlGroupStats,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The report of one thread, which covers about one second.
#[derive(Default)]
pub(crate) struct RateIntervalReport {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// Number of the reported second, from 1.
    pub(crate) second: u64,
    /// Statistics by step index and by kind of request.
    pub(crate) cells: BTreeMap<(u32, RequestKind), Box<RequestStats>>,
    /// Number of requests that became due, by index of the step.
    pub(crate) due: BTreeMap<u32, u64>,
    pub(crate) unsent: u64,
    pub(crate) abandoned: u64,
    pub(crate) lag: LatencyHistogram,
    pub(crate) connect: LatencyHistogram,
    pub(crate) examples: BTreeMap<FailureKind, String>,
    pub(crate) records: Vec<RequestRecord>,
    /// Number of open connections of all threads.
    pub(crate) open: u64,
    /// Statistics of the whole run, by index of the URL group. Empty in all reports except the
    /// final report.
    pub(crate) url_groups: BTreeMap<usize, Box<UrlGroupStats>>,
    /// This report is the final report of the thread.
    pub(crate) last: bool,
}

/// The statistics of one thread, which are updated when a request is due, starts or ends.
pub(super) struct RateThreadStats {
    pub(super) report: Box<RateIntervalReport>,
    /// Statistics of the whole run, by index of the URL group.
    url_groups: BTreeMap<usize, Box<UrlGroupStats>>,
    pub(super) metrics: Option<ThreadMetrics>,
    start: Instant,
    keep_records: bool,
    closed_loop: bool,
}

impl RateThreadStats {
    pub(super) fn new(common: &SharedRun, start: Instant) -> RateThreadStats {
        let closed_loop = matches!(common.plan.profile, RateProfile::Max { .. });
        let metrics = common.plan.metrics.as_ref();
        RateThreadStats {
            report: Box::default(),
            url_groups: BTreeMap::new(),
            metrics: metrics.map(|shared| ThreadMetrics::new(shared, closed_loop)),
            start,
            keep_records: common.keep_records,
            closed_loop,
        }
    }

    /// Sets the start of the run. Due times are relative to this start.
    pub(super) fn set_start(&mut self, start: Instant) {
        self.start = start;
    }

    /// Returns the statistics since the last report, and resets them.
    pub(super) fn take_report(&mut self, thread: usize, second: u64) -> Box<RateIntervalReport> {
        let mut report = std::mem::take(&mut self.report);
        report.thread = thread;
        report.second = second;
        report
    }

    /// Returns the final report, with the statistics since the previous report. The final report
    /// also contains the statistics of the whole run by URL group.
    pub(super) fn take_last_report(
        &mut self,
        thread: usize,
        second: u64,
    ) -> Box<RateIntervalReport> {
        let mut report = self.take_report(thread, second);
        report.url_groups = std::mem::take(&mut self.url_groups);
        report.last = true;
        report
    }

    pub(super) fn count_due(&mut self, step: u32) {
        *self.report.due.entry(step).or_default() += 1;
        if let Some(metrics) = &self.metrics {
            metrics.count_due();
        }
    }

    /// Records how late the generator started a request that had a free connection.
    pub(super) fn record_lag(&mut self, lag: Duration) {
        self.report.lag.record(lag);
        if let Some(metrics) = &self.metrics {
            metrics.record_lag(lag);
        }
    }

    pub(super) fn record_connect(&mut self, took: Duration) {
        self.report.connect.record(took);
    }

    /// Counts a request that completed or failed.
    pub(super) fn count_request(
        &mut self,
        request: &ScheduledRequest,
        prepared: &PreparedTarget,
        timing: &ExchangeOutcome,
        failure: Option<&RequestFailure>,
    ) {
        let target = &prepared.target;
        let kind = target.kind;
        let finished = FinishedRequest {
            due: self.start + Duration::from_nanos(request.due_ns),
            sent: timing.sent,
            first_byte: timing.first,
            end: timing.end,
            status: timing.status,
            bytes: timing.bytes,
            fault: failure.map(|failure| failure.fault),
            late: request.late,
        };
        let cell = self.report.cells.entry((request.step, kind)).or_default();
        cell.count_request(&finished);
        let group = self.url_groups.entry(prepared.group).or_default();
        group.count_request(&finished, self.closed_loop);
        if let Some(metrics) = &mut self.metrics {
            metrics.count_request(kind, &finished);
        }
        if let Some(failure) = failure {
            let examples = &mut self.report.examples;
            examples
                .entry(failure.fault)
                .or_insert_with(|| failure.to_string());
        }
        if self.keep_records {
            let record = {
                let of = (&target.url, target.viewer.as_deref());
                finished.to_record(request.n, request.step, kind, self.start, of)
            };
            self.report.records.push(record);
        }
    }
}
