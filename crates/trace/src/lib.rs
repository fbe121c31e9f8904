//! Traces of sampled requests.
//!
//! A [`Tracer`] decides whether a request is traced. The [`ActiveTrace`] of a traced request is a
//! task-local value, which [`in_span`] and [`start_span`] use. In other requests, these functions
//! create no span. Finished spans are queued, and a thread exports them over OTLP/HTTP. If the
//! caller decided against a trace, the request has spans that are not exported, so that outgoing
//! requests pass this decision on.

mod active_trace;
mod caller_limit;
mod collector_headers;
mod context;
mod exporter;
mod otlp;
mod tracer;

pub use active_trace::{
    ActiveTrace, OpenSpan, TracedRequest, bind_trace, bind_trace_blocking, in_span, run_with_trace,
    start_span,
};
pub use collector_headers::CollectorHeaders;
pub use context::{TRACEPARENT, TraceContext};
pub use otlp::SpanKind;
pub use tracer::{RequestTracing, ServerTimingCheck, Tracer};
