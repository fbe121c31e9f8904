//! Decides whether a request is traced, and queues finished spans.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime};

use http::header::HeaderMap;
use http::request::Parts;
use tokio::sync::mpsc;

use crate::active_trace::{ActiveTrace, SharedTraceData, TracedRequest};
use crate::caller_limit::CallerLimit;
use crate::collector_headers::CollectorHeaders;
use crate::context::TraceContext;
use crate::exporter::spawn_exporter;
use crate::otlp::FinishedSpan;

/// Maximum number of spans that wait for the collector. While the queue is full, new spans are
/// dropped. A full queue needs about 4 MiB.
const QUEUE_SPANS_MAX: usize = 8192;

/// A function of the request headers that returns whether the client wants and may receive
/// `Server-Timing`.
pub type ServerTimingCheck = Box<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// Traces and times the requests of a server.
pub struct RequestTracing {
    tracer: Option<Tracer>,
    requests_timing: Option<ServerTimingCheck>,
}

/// Queues the finished spans of sampled requests for the collector. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracer {
    queue: SpanQueue,
    /// Share of traced requests among the requests without `traceparent`. `u64::MAX` means that all
    /// these requests are traced.
    threshold: u64,
    caller_limit: Arc<CallerLimit>,
}

/// The sending end of the queue of finished spans.
#[derive(Debug, Clone)]
pub(crate) struct SpanQueue {
    sender: mpsc::Sender<FinishedSpan>,
    dropped: Arc<AtomicU64>,
}

impl SpanQueue {
    pub(crate) fn push_span(&self, span: FinishedSpan) {
        if self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl Tracer {
    /// Starts the export to the collector at `endpoint`, such as `http://localhost:4318/v1/traces`.
    /// `headers` are sent with each batch. `ratio` is the share of requests without `traceparent` that
    /// are traced.
    ///
    /// # Errors
    /// When the URL is invalid, or the system cannot create a thread.
    pub fn start_export(
        endpoint: &str,
        headers: Option<CollectorHeaders>,
        service: &'static str,
        ratio: f64,
    ) -> io::Result<Tracer> {
        let (sender, receiver) = mpsc::channel(QUEUE_SPANS_MAX);
        let dropped = Arc::<AtomicU64>::default();
        spawn_exporter(endpoint, headers, service, receiver, dropped.clone())?;
        Ok(Tracer {
            queue: SpanQueue { sender, dropped },
            threshold: (ratio.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            caller_limit: Arc::new(CallerLimit::new()),
        })
    }

    fn dropped_spans(&self) -> u64 {
        self.queue.dropped.load(Relaxed)
    }
}

impl RequestTracing {
    /// Combines a tracer and a `Server-Timing` check. Returns `None` if both are `None`, so that a
    /// server without tracing runs only one branch per request.
    pub fn new(
        tracer: Option<Tracer>,
        requests_timing: Option<ServerTimingCheck>,
    ) -> Option<RequestTracing> {
        let is_used = tracer.is_some() || requests_timing.is_some();
        is_used.then_some(RequestTracing {
            tracer,
            requests_timing,
        })
    }

    /// Returns the number of spans that were lost because the collector was slow or unreachable, or
    /// refused a batch.
    pub fn dropped_spans(&self) -> u64 {
        self.tracer.as_ref().map_or(0, Tracer::dropped_spans)
    }

    /// Starts a trace if the request is sampled, or if the client requests `Server-Timing`. Also
    /// starts a trace if the caller sent `traceparent` and the request is not sampled. Its spans are
    /// not exported, but outgoing requests pass the decision on (W3C Trace Context, section 3.2.2.5).
    pub fn start_request(&self, request: &Parts) -> Option<Box<TracedRequest>> {
        let trace = self.start_trace_from_headers(&request.headers)?;
        Some(Box::new(TracedRequest::new(trace, request)))
    }

    fn start_trace_from_headers(&self, headers: &HeaderMap) -> Option<ActiveTrace> {
        let parent = TraceContext::from_headers(headers);
        let tracer = self.tracer.as_ref();
        let tracer = tracer.filter(|tracer| match parent {
            Some(parent) => parent.is_sampled && tracer.caller_limit.admit(),
            None => tracer.threshold > 0 && next_id() <= tracer.threshold,
        });
        let reports_timing = self.requests_timing.as_ref();
        let reports_timing = reports_timing.is_some_and(|requests| requests(headers));
        // A server that exports no traces decides nothing.
        let passes_decision = tracer.is_some() || (self.tracer.is_some() && parent.is_some());
        if !passes_decision && !reports_timing {
            return None;
        }
        let new_trace = || u128::from(next_id()) << 64 | u128::from(next_id());
        Some(ActiveTrace::new(SharedTraceData {
            trace_id: parent.map_or_else(new_trace, |parent| parent.trace_id),
            parent_id: parent.map(|parent| parent.span_id),
            request_id: next_id(),
            queue: tracer.map(|tracer| tracer.queue.clone()),
            passes_decision,
            reports_timing,
            started: Instant::now(),
            started_at: SystemTime::now(),
            timed_parts: Mutex::default(),
        }))
    }
}

/// Returns an identifier that is unique within the process and never zero. Each process starts from
/// a random seed (splitmix64).
pub(crate) fn next_id() -> u64 {
    static STATE: OnceLock<AtomicU64> = OnceLock::new();
    let seed = || AtomicU64::new(RandomState::new().build_hasher().finish());
    let state = STATE.get_or_init(seed);
    let mut x = state.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = lines.iter();
        pairs
            .map(|(name, value)| {
                (
                    http::HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn tracing(ratio: f64) -> (RequestTracing, mpsc::Receiver<FinishedSpan>) {
        let (sender, receiver) = mpsc::channel(2);
        let queue = SpanQueue {
            sender,
            dropped: Arc::default(),
        };
        let threshold = (ratio * u64::MAX as f64) as u64;
        let tracer = Tracer {
            queue,
            threshold,
            caller_limit: Arc::new(CallerLimit::new()),
        };
        (RequestTracing::new(Some(tracer), None).unwrap(), receiver)
    }

    const SAMPLED: (&str, &str) = (
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    );
    const UNSAMPLED: (&str, &str) = (
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
    );

    #[test]
    fn the_caller_decides_and_otherwise_the_ratio() {
        assert!(RequestTracing::new(None, None).is_none());
        let (never, _spans) = tracing(0.0);
        assert!(never.start_trace_from_headers(&headers(&[])).is_none());
        assert!(
            never
                .start_trace_from_headers(&headers(&[SAMPLED]))
                .is_some()
        );
        let (always, _spans) = tracing(1.0);
        assert!(always.start_trace_from_headers(&headers(&[])).is_some());
        let (half, _spans) = tracing(0.5);
        let count = (0..1000).filter(|_| half.start_trace_from_headers(&headers(&[])).is_some());
        assert!((300..700).contains(&count.count()));
        let is_timed: ServerTimingCheck = Box::new(|headers| headers.contains_key("x-timing"));
        let timed = RequestTracing::new(None, Some(is_timed)).unwrap();
        assert!(
            timed
                .start_trace_from_headers(&headers(&[SAMPLED]))
                .is_none()
        );
        let trace = timed
            .start_trace_from_headers(&headers(&[("x-timing", "1")]))
            .unwrap();
        drop(trace.start_span("index", crate::SpanKind::Internal));
        let text = trace.server_timing().unwrap();
        assert!(
            text.starts_with("total;dur=") && text.contains(", index;dur="),
            "{text}"
        );
    }

    #[test]
    fn the_decision_of_a_caller_against_a_trace_is_passed_on() {
        let (tracing, mut spans) = tracing(1.0);
        let start_span = |caller| {
            let trace = tracing.start_trace_from_headers(&headers(&[caller]));
            trace.unwrap().start_span("span", crate::SpanKind::Client)
        };
        let unsampled = start_span(UNSAMPLED).context().unwrap();
        let expected = format!(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-{:016x}-00",
            unsampled.span_id
        );
        assert_eq!(unsampled.to_header().unwrap(), expected);
        let mut waiting = start_span(SAMPLED);
        waiting.set_link(unsampled);
        drop(waiting);
        // Only the second span is exported, and without a link to the first span.
        assert_eq!(spans.try_recv().unwrap().link, None);
        assert!(spans.try_recv().is_err());
        // A server that exports no traces decides nothing.
        let timed = RequestTracing::new(None, Some(Box::new(|_| true))).unwrap();
        let trace = timed
            .start_trace_from_headers(&headers(&[SAMPLED]))
            .unwrap();
        let span = trace.start_span("span", crate::SpanKind::Client);
        assert_eq!(span.context(), None);
    }

    #[test]
    fn spans_are_children_and_excess_ones_are_counted() {
        let (tracing, mut spans) = tracing(0.0);
        let trace = tracing
            .start_trace_from_headers(&headers(&[SAMPLED]))
            .unwrap();
        let outer = trace.start_span("outer", crate::SpanKind::Internal);
        let mut inner = outer
            .trace_for_child_spans()
            .start_span("inner", crate::SpanKind::Client);
        inner.set_link(outer.context().unwrap());
        drop(inner);
        drop(outer);
        let request = || http::Request::new(()).into_parts().0;
        let end = |status| {
            TracedRequest::new(trace.clone(), &request())
                .end_request(status, ("headwater.kind", "other"))
        };
        end(http::StatusCode::OK);
        let (inner, outer) = (spans.try_recv().unwrap(), spans.try_recv().unwrap());
        assert_eq!((inner.name, outer.name), ("inner", "outer"));
        assert_eq!(inner.parent_id, Some(outer.span_id));
        assert_eq!(inner.link.unwrap().span_id, outer.span_id);
        assert_eq!(outer.link, None);
        assert_eq!(inner.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(tracing.tracer.as_ref().unwrap().dropped_spans(), 1);
        end(http::StatusCode::SERVICE_UNAVAILABLE);
        let request = spans.try_recv().unwrap();
        assert_eq!(request.parent_id, Some(0x00f0_67aa_0ba9_02b7));
        assert_eq!(outer.parent_id, Some(request.span_id));
        assert!(request.is_error);
    }
}
