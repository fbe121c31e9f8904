//! Requests that completed or failed. All generators count requests in this form.

use super::{RequestRecord, RequestStats};
use crate::client::FailureKind;
use crate::rate::RequestKind;
use std::time::Instant;

/// A request that completed or failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinishedRequest {
    /// Time when the request was due.
    pub(crate) due: Instant,
    /// Time when the first byte of the request was sent; `None` if the request was never sent.
    pub(crate) sent: Option<Instant>,
    /// Time when the first byte of the response arrived.
    pub(crate) first_byte: Option<Instant>,
    /// Time when the last byte arrived, or when the request failed.
    pub(crate) end: Instant,
    /// Status of the response; 0 if there was no response.
    pub(crate) status: u16,
    /// Body bytes received.
    pub(crate) bytes: u64,
    pub(crate) fault: Option<FailureKind>,
    /// Whether the request waited for a free connection.
    pub(crate) late: bool,
}

impl FinishedRequest {
    /// Returns the record of this request, with the given URL and viewer. Times in the record are
    /// relative to `run_start`.
    pub(crate) fn to_record(
        self,
        n: u64,
        step: u32,
        kind: RequestKind,
        run_start: Instant,
        (url, viewer): (&url::Url, Option<&str>),
    ) -> RequestRecord {
        let ms = |at: Instant| at.saturating_duration_since(run_start).as_nanos() as f64 / 1e6;
        RequestRecord {
            n,
            due_ms: ms(self.due),
            sent_ms: self.sent.map(ms),
            first_ms: self.first_byte.map(ms),
            end_ms: ms(self.end),
            step,
            kind,
            status: self.status,
            bytes: self.bytes,
            fault: self.fault,
            late: self.late,
            abandoned: false,
            url: RequestRecord::recorded_url(url),
            viewer: viewer.map(Into::into),
        }
    }
}

impl RequestStats {
    /// Counts one request.
    pub(crate) fn count_request(&mut self, request: &FinishedRequest) {
        self.requests += 1;
        self.bytes += request.bytes;
        self.late += u64::from(request.late);
        let since = |from: Instant| request.end.saturating_duration_since(from);
        self.from_due.record(since(request.due));
        if let Some(sent) = request.sent {
            self.from_sent.record(since(sent));
            if let Some(first) = request.first_byte {
                self.first_byte
                    .record(first.saturating_duration_since(sent));
            }
        }
        match request.fault {
            Some(fault) => *self.faults.entry(fault).or_default() += 1,
            None => *self.statuses.entry(request.status).or_default() += 1,
        }
    }
}
