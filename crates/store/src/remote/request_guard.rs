//! Guards that count and record requests.

use super::endpoints::Endpoint;
use super::request_failure::RequestFailure;
use super::{CompletedRequest, RemoteCore};
use crate::http::StorageRequestContext;
use crate::{Key, RequestReason};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;
use trace::{OpenSpan, SpanKind, TraceContext};

/// The guard of a counted request. When the guard is dropped, it records the completed request.
pub(super) struct RequestGuard {
    core: Arc<RemoteCore>,
    pub(super) call: Arc<StorageRequestContext>,
    done: Option<CompletedRequest>,
    /// The span of the request, if the request is traced.
    span: Option<OpenSpan>,
}

impl RemoteCore {
    /// Counts a new request and returns its guard.
    pub(super) fn open_request_guard(
        self: &Arc<RemoteCore>,
        endpoint: &Endpoint,
        key: &Key,
        reason: RequestReason,
        original_reason: RequestReason,
        method: &'static str,
        mut call: StorageRequestContext,
    ) -> RequestGuard {
        self.meter.count_request(reason, 0);
        self.meter.count_storage_wait(reason);
        let span = trace::start_span("storage.read", SpanKind::Client);
        let context = span.as_ref().and_then(OpenSpan::context);
        call.set_traceparent(context.and_then(TraceContext::to_header));
        let call = Arc::new(call);
        RequestGuard {
            span,
            core: self.clone(),
            done: Some(CompletedRequest {
                started: SystemTime::now(),
                reason,
                original_reason,
                method,
                key: key.as_str().to_owned(),
                endpoint: endpoint.name.clone(),
                range: None,
                status: None,
                bytes: 0,
                connection: None,
                first_byte: None,
                total: Default::default(),
                complete: false,
                error: None,
            }),
            call,
        }
    }
}

impl RequestGuard {
    pub(super) fn set_range(&mut self, range: &Range<u64>) {
        self.edit_record(|done| done.range = Some(range.clone()));
    }

    pub(super) fn record_bytes(&mut self, bytes: u64) {
        if let Some(done) = &mut self.done {
            done.bytes += bytes;
            self.core.meter.count_bytes(done.reason, bytes);
        }
    }

    pub(super) fn mark_complete(&mut self) {
        self.edit_record(|done| done.complete = true);
    }

    pub(super) fn record_failure(&mut self, failure: RequestFailure) -> RequestFailure {
        self.edit_record(|done| done.error = Some(failure.error.to_string()));
        failure
    }

    fn edit_record(&mut self, edit: impl FnOnce(&mut CompletedRequest)) {
        if let Some(done) = &mut self.done {
            edit(done);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let Some(mut done) = self.done.take() else {
            return;
        };
        let watch = &self.core.options.watch;
        if watch.is_none() && self.span.is_none() {
            return;
        }
        let notes = self.call.notes();
        done.status = notes.status;
        done.connection = notes.connection;
        done.first_byte = notes.head_received.map(|at| at - self.call.started);
        done.total = self.call.started.elapsed();
        if let Some(span) = &mut self.span {
            set_span_attributes(span, &done);
            if let Some(server) = &notes.server {
                span.set_text("server.address", &server.host);
                span.set_number("server.port", server.port.into());
            }
        }
        if let Some(watch) = watch {
            watch.notify(done);
        }
    }
}

fn set_span_attributes(span: &mut OpenSpan, done: &CompletedRequest) {
    span.set_text("headwater.endpoint", &done.endpoint);
    span.set_text("http.request.method", done.method);
    span.set_text("headwater.reason", done.reason.label());
    span.set_number("headwater.bytes", done.bytes);
    if let Some(status) = done.status {
        span.set_number("http.response.status_code", u64::from(status));
    }
    if let Some(error) = &done.error {
        span.set_text("error.type", error);
        span.set_error();
    }
}
