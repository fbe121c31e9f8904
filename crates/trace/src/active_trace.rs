//! The trace of the current request, and its spans.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::request::Parts;
use http::{Method, StatusCode};

use crate::context::TraceContext;
use crate::otlp::{AttributeValue, FinishedSpan, SpanKind};
use crate::tracer::{SpanQueue, next_id};

tokio::task_local! {
    static ACTIVE: ActiveTrace;
}

/// Maximum number of parts of a request that `Server-Timing` reports.
const TIMED_PARTS_MAX: usize = 16;

/// The trace of a request, and the span that is the parent of new spans. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ActiveTrace {
    shared: Arc<SharedTraceData>,
    span_id: u64,
}

#[derive(Debug)]
pub(crate) struct SharedTraceData {
    pub(crate) trace_id: u128,
    /// The identifier of the caller's span.
    pub(crate) parent_id: Option<u64>,
    pub(crate) request_id: u64,
    /// `None` if the spans are not exported.
    pub(crate) queue: Option<SpanQueue>,
    /// Whether outgoing requests pass on the decision whether the request is sampled.
    pub(crate) passes_decision: bool,
    /// Whether the response reports the durations of the request's parts.
    pub(crate) reports_timing: bool,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    pub(crate) timed_parts: Mutex<Vec<(&'static str, Duration)>>,
}

/// A span that ends when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    trace: ActiveTrace,
    id: u64,
    name: &'static str,
    kind: SpanKind,
    started: Instant,
    attributes: Vec<(&'static str, AttributeValue)>,
    link: Option<TraceContext>,
    is_error: bool,
}

/// Returns the trace of the current task, if its request is traced.
fn current_trace() -> Option<ActiveTrace> {
    ACTIVE.try_with(ActiveTrace::clone).ok()
}

/// Runs a future as a part of this trace.
pub async fn run_with_trace<F: Future>(trace: ActiveTrace, work: F) -> F::Output {
    ACTIVE.scope(trace, work).await
}

/// Binds a future to the trace of the current task, so that the future can run in another task.
pub fn bind_trace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let trace = current_trace();
    async move {
        match trace {
            Some(trace) => ACTIVE.scope(trace, Box::pin(work)).await,
            None => work.await,
        }
    }
}

/// Binds blocking work to the trace of the current task, so that the work can run on another
/// thread.
pub fn bind_trace_blocking<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let trace = current_trace();
    move || match trace {
        Some(trace) => ACTIVE.sync_scope(trace, work),
        None => work(),
    }
}

/// Runs a future within a new span, if the current request is traced.
pub async fn in_span<F: Future>(name: &'static str, work: F) -> F::Output {
    match start_span(name, SpanKind::Internal) {
        Some(span) => {
            ACTIVE
                .scope(span.trace_for_child_spans(), Box::pin(work))
                .await
        }
        None => work.await,
    }
}

/// Starts a child of the current span, if the current request is traced.
pub fn start_span(name: &'static str, kind: SpanKind) -> Option<OpenSpan> {
    Some(current_trace()?.start_span(name, kind))
}

impl ActiveTrace {
    pub(crate) fn new(shared: SharedTraceData) -> ActiveTrace {
        ActiveTrace {
            span_id: shared.request_id,
            shared: Arc::new(shared),
        }
    }

    /// Starts a child of the current span.
    pub fn start_span(&self, name: &'static str, kind: SpanKind) -> OpenSpan {
        OpenSpan {
            trace: self.clone(),
            id: next_id(),
            name,
            kind,
            started: Instant::now(),
            attributes: Vec::new(),
            link: None,
            is_error: false,
        }
    }

    /// Returns the value of `Server-Timing` (W3C) if the client requested this header. The value
    /// contains the time since the start of the request, and the durations of the request's parts.
    pub fn server_timing(&self) -> Option<String> {
        let shared = &self.shared;
        shared.reports_timing.then_some(())?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut text = format!("total;dur={:.3}", ms(shared.started.elapsed()));
        let parts = shared.timed_parts.lock();
        for (name, time) in parts.unwrap_or_else(PoisonError::into_inner).iter() {
            text += &format!(", {name};dur={:.3}", ms(*time));
        }
        Some(text)
    }
}

/// A traced request whose response has not been sent yet.
#[derive(Debug)]
pub struct TracedRequest {
    trace: ActiveTrace,
    method: Method,
    path: String,
}

impl TracedRequest {
    pub(crate) fn new(trace: ActiveTrace, request: &Parts) -> TracedRequest {
        TracedRequest {
            trace,
            method: request.method.clone(),
            path: request.uri.path().to_owned(),
        }
    }

    /// Returns the trace of this request.
    pub fn trace_of_request(&self) -> &ActiveTrace {
        &self.trace
    }

    /// Returns the trace ID if the spans of the trace are exported.
    pub fn exported_trace_id(&self) -> Option<u128> {
        let shared = &self.trace.shared;
        shared.queue.as_ref().map(|_| shared.trace_id)
    }

    /// Ends the span of the request itself. Attribute names follow the semantic conventions for
    /// HTTP; `class` is an additional attribute that the program defines.
    pub fn end_request(self, status: StatusCode, class: (&'static str, &'static str)) {
        let shared = &self.trace.shared;
        let mut span = OpenSpan {
            id: shared.request_id,
            name: "request",
            kind: SpanKind::Server,
            started: shared.started,
            attributes: Vec::new(),
            link: None,
            is_error: status.is_server_error(),
            trace: self.trace.clone(),
        };
        span.set_text("http.request.method", self.method.as_str());
        span.set_text("url.path", &self.path);
        span.set_number("http.response.status_code", u64::from(status.as_u16()));
        span.set_text(class.0, class.1);
    }
}

/// Maximum length of an attribute's text in characters.
const TEXT_CHARS_MAX: usize = 256;

impl OpenSpan {
    /// Adds a text attribute. Text over 256 characters is truncated.
    pub fn set_text(&mut self, key: &'static str, value: &str) {
        let value = value.chars().take(TEXT_CHARS_MAX).collect();
        self.attributes.push((key, AttributeValue::Text(value)));
    }

    /// Adds a numeric attribute.
    pub fn set_number(&mut self, key: &'static str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.attributes.push((key, AttributeValue::Number(value)));
    }

    /// Links this span to a span of another trace, if that span is exported. This span waits for
    /// the result of the linked span.
    pub fn set_link(&mut self, linked: TraceContext) {
        self.link = Some(linked).filter(|linked| linked.is_sampled);
    }

    /// Marks the span as failed.
    pub fn set_error(&mut self) {
        self.is_error = true;
    }

    /// Returns the trace context for outgoing requests of this span. It passes on the decision
    /// whether the request is sampled. Returns `None` if there is no decision, so that the receiver
    /// decides.
    pub fn context(&self) -> Option<TraceContext> {
        let shared = &self.trace.shared;
        shared.passes_decision.then(|| TraceContext {
            trace_id: shared.trace_id,
            span_id: self.id,
            is_sampled: shared.queue.is_some(),
        })
    }

    /// Returns the trace with this span as the parent of new spans.
    pub fn trace_for_child_spans(&self) -> ActiveTrace {
        ActiveTrace {
            shared: self.trace.shared.clone(),
            span_id: self.id,
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let shared = &self.trace.shared;
        let elapsed = self.started.elapsed();
        let is_request = self.id == shared.request_id;
        if shared.reports_timing && !is_request && self.trace.span_id == shared.request_id {
            let parts = shared.timed_parts.lock();
            let mut parts = parts.unwrap_or_else(PoisonError::into_inner);
            if parts.len() < TIMED_PARTS_MAX {
                parts.push((self.name, elapsed));
            }
        }
        let Some(queue) = &shared.queue else {
            return;
        };
        let started_at = shared.started_at + self.started.duration_since(shared.started);
        let started = started_at.duration_since(SystemTime::UNIX_EPOCH);
        let started = started.unwrap_or_default();
        let unix_ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let parent = match is_request {
            true => shared.parent_id,
            false => Some(self.trace.span_id),
        };
        queue.push_span(FinishedSpan {
            trace_id: shared.trace_id,
            span_id: self.id,
            parent_id: parent,
            name: self.name,
            kind: self.kind,
            started_unix_ns: unix_ns(started),
            ended_unix_ns: unix_ns(started + elapsed),
            attributes: std::mem::take(&mut self.attributes),
            link: self.link,
            is_error: self.is_error,
        });
    }
}
