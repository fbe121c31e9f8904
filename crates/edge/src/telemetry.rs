//! Access records, counters and log lines of requests.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Instant;

use http::Response;
use http::header::{HeaderMap, HeaderValue};
use http::request::Parts;
use net::metrics::{
    Counter, CounterFamily, Gauge, MetricSpec, Metrics, RequestHistograms, TRACE_SPANS_DROPPED,
    TrafficMetrics,
};
use net::record::{AccessRecord, BoundedText, CacheFacts, REQUEST_ID, Recorder, micros};
use net::{Body, Conn, Error, headers};
use store::cache::FetchTable;
use trace::{ActiveTrace, RequestTracing, TracedRequest};

use crate::cache_outcome::{CACHE_RESULTS, CacheOutcome, LOCAL_RESULT};
use crate::content_kind::{CONTENT_KINDS, ContentKind};

const KINDS: &[&str] = &["relay", "admin"];

const CACHE_REQUESTS: MetricSpec = MetricSpec {
    name: "cache_requests",
    unit: "",
    help: "Requests by cache result",
};
const CACHE_REASONS: MetricSpec = MetricSpec {
    name: "cache_reasons",
    unit: "",
    help: "Requests by cache result and reason",
};
const CACHE_BYTES: MetricSpec = MetricSpec {
    name: "cache_memory",
    unit: "bytes",
    help: "Size of the responses in memory, including their heads",
};
const CACHE_OBJECTS: MetricSpec = MetricSpec {
    name: "cache_objects",
    unit: "",
    help: "Responses in memory",
};
const FLIGHTS: MetricSpec = MetricSpec {
    name: "cache_flights",
    unit: "",
    help: "Fetches in progress",
};
const FOLLOWERS: MetricSpec = MetricSpec {
    name: "cache_followers",
    unit: "",
    help: "Requests waiting for another request's fetch",
};

/// The edge's metrics, and the writer of access records.
pub struct RequestTelemetry {
    metrics: Metrics,
    traffic: TrafficMetrics,
    timings: RequestHistograms,
    tracing: Option<RequestTracing>,
    spans_dropped: Counter,
    results: CounterFamily,
    reasons: CounterFamily,
    hits: Counter,
    fresh: Counter,
    bytes: Gauge,
    objects: Gauge,
    flights: Gauge,
    followers: Gauge,
    recorder: Option<Recorder>,
}

/// A request in progress.
pub struct PendingRecord {
    started: Instant,
    content: ContentKind,
    /// The incomplete access record. Absent if neither the records nor debug logs need it.
    access: Option<Box<AccessRecord>>,
    traced: Option<Box<TracedRequest>>,
}

/// The facts of a served request that the counters and the access record need.
pub struct RequestSummary {
    pub outcome: CacheOutcome,
    pub upstream_us: Option<u64>,
    pub error: Option<Error>,
    /// Name of the rule that matched the response.
    pub rule: Option<String>,
    pub cmcd: Option<BTreeMap<String, serde_json::Value>>,
}

impl PendingRecord {
    /// Returns the trace of the request, if the request is traced.
    pub fn trace_of_request(&self) -> Option<&ActiveTrace> {
        self.traced.as_ref().map(|traced| traced.trace_of_request())
    }

    /// Returns the request id and the time of arrival, if the request is recorded.
    pub fn request_identity(&self) -> Option<(&BoundedText, Instant)> {
        let access = self.access.as_ref()?;
        Some((&access.request_id, self.started))
    }
}

impl RequestTelemetry {
    pub fn new(
        metrics: Metrics,
        recorder: Option<Recorder>,
        tracing: Option<RequestTracing>,
    ) -> RequestTelemetry {
        let results = metrics.counter_family(&CACHE_REQUESTS, &["result"]);
        let reasons = metrics.counter_family(&CACHE_REASONS, &["result", "reason"]);
        RequestTelemetry {
            traffic: TrafficMetrics::new(&metrics, KINDS),
            timings: RequestHistograms::with_label_pairs(
                &metrics,
                ("result", CACHE_RESULTS),
                ("kind", CONTENT_KINDS),
            ),
            tracing,
            spans_dropped: metrics.counter(&TRACE_SPANS_DROPPED),
            hits: results.with_labels(&[CacheOutcome::Hit.result_label()]),
            fresh: reasons.with_labels(&[
                CacheOutcome::Hit.result_label(),
                CacheOutcome::Hit.reason_label(),
            ]),
            results,
            reasons,
            bytes: metrics.gauge(&CACHE_BYTES),
            objects: metrics.gauge(&CACHE_OBJECTS),
            flights: metrics.gauge(&FLIGHTS),
            followers: metrics.gauge(&FOLLOWERS),
            metrics,
            recorder,
        }
    }

    /// Returns the writer of access records.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Reopens the records file, because logrotate may have moved it away.
    pub fn reopen_records(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.reopen();
        }
    }

    /// Updates the gauges, and returns all metrics in the format that the request headers prefer.
    /// `memory_use` is the number of bytes and the number of objects in the memory tier.
    pub fn render_metrics<K, T>(
        &self,
        request_headers: &HeaderMap,
        memory_use: (u64, usize),
        flights: &FetchTable<K, T>,
    ) -> Response<Body>
    where
        K: Eq + Hash + Clone,
        T: Clone,
    {
        let set = |gauge: &Gauge, count| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.bytes
            .set(i64::try_from(memory_use.0).unwrap_or(i64::MAX));
        set(&self.objects, memory_use.1);
        set(&self.flights, flights.len());
        set(&self.followers, flights.total_follower_count());
        let dropped = self.tracing.as_ref().map(RequestTracing::dropped_spans);
        let new = dropped
            .unwrap_or(0)
            .saturating_sub(self.spans_dropped.get());
        self.spans_dropped.inc_by(new);
        self.metrics.scrape_response(request_headers)
    }

    /// Returns the number of requests for each cache result.
    pub fn request_counts_by_result(&self) -> BTreeMap<&'static str, u64> {
        let names = CACHE_RESULTS.iter().filter(|name| **name != LOCAL_RESULT);
        names
            .map(|name| (*name, self.results.with_labels(&[name]).get()))
            .collect()
    }

    /// Starts the record of a request.
    pub fn start_request(&self, parts: &Parts, conn: &Conn) -> PendingRecord {
        let wanted = self.recorder.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        PendingRecord {
            started: Instant::now(),
            content: ContentKind::from_path(parts.uri.path()),
            traced: self.tracing.as_ref().and_then(|on| on.start_request(parts)),
            access: wanted.then(|| Box::new(AccessRecord::from_request(parts, conn))),
        }
    }

    /// Counts a request by its cache result. Completes the access record when the response body has
    /// been sent.
    pub fn finish_request(
        &self,
        pending: PendingRecord,
        response: &mut Response<Body>,
        summary: RequestSummary,
    ) {
        let kind = usize::from(summary.outcome == CacheOutcome::Local);
        self.count_outcome(summary.outcome);
        if let Some(error) = &summary.error
            && error.status.is_server_error()
        {
            tracing::warn!(%error, "request failed");
        }
        let status = response.status();
        if let Some(access) = &pending.access
            && let Ok(id) = HeaderValue::from_str(access.request_id.as_str())
        {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let (traffic, recorder) = (self.traffic.clone(), self.recorder.clone());
        let timings = self.timings.clone();
        let PendingRecord {
            started,
            content,
            access,
            traced,
        } = pending;
        let timing = timing_index(summary.outcome, content);
        if let Some(traced) = &traced {
            headers::add_server_timing(
                response.headers_mut(),
                traced.trace_of_request().server_timing(),
            );
        }
        response.body_mut().on_end(true, move |end| {
            traffic.count_request(kind, status);
            traffic.count_bytes(kind, end.bytes);
            timings.record_request(timing, started, end);
            if let Some(traced) = traced {
                if let Some(trace_id) = traced.exported_trace_id() {
                    timings.record_exemplar(timing, started, end, trace_id);
                }
                traced.end_request(status, ("headwater.cache", summary.outcome.result_label()));
            }
            let Some(mut access) = access else {
                return;
            };
            access.status = status.as_u16();
            access.kind = KINDS.get(kind).copied().unwrap_or("relay");
            access.bytes = end.bytes;
            access.complete = end.complete;
            access.total_us = end.finished.map_or(0, |at| micros(at - started));
            access.first_byte_us = end.first_byte.map(|at| micros(at - started));
            let cut = end.error.as_ref().map(ToString::to_string);
            let error = summary.error.map(|e| e.operator_message().to_owned());
            access.error = error.or(cut).map(Into::into);
            access.cached = (summary.outcome != CacheOutcome::Local).then(|| CacheFacts {
                cache: summary.outcome.result_label(),
                reason: summary.outcome.reason_label(),
                upstream_us: summary.upstream_us,
                rule: summary.rule.map(Into::into),
            });
            access.cmcd = summary.cmcd;
            tracing::debug!(
                path = access.path.as_str(),
                status = access.status,
                cache = summary.outcome.result_label(),
                reason = summary.outcome.reason_label(),
                total_us = access.total_us,
                complete = access.complete,
                "request"
            );
            if let Some(recorder) = &recorder {
                recorder.record_access(*access);
            }
        });
    }

    fn count_outcome(&self, outcome: CacheOutcome) {
        match outcome {
            CacheOutcome::Local => {}
            CacheOutcome::Hit => {
                self.hits.inc();
                self.fresh.inc();
            }
            _ => {
                self.results.with_labels(&[outcome.result_label()]).inc();
                self.reasons
                    .with_labels(&[outcome.result_label(), outcome.reason_label()])
                    .inc();
            }
        }
    }
}

/// Returns the index of the histograms for a cache result and a kind of content.
fn timing_index(outcome: CacheOutcome, content: ContentKind) -> usize {
    outcome.result_index() * CONTENT_KINDS.len() + content as usize
}
