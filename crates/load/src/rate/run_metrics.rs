//! Prometheus metrics of a load test, updated while the test runs.

use super::RequestKind;
use crate::client::FailureKind;
use crate::result::FinishedRequest;
use net::metrics::{Counter, CounterFamily, DurationHistogram, Gauge, MetricSpec, Metrics};
use std::sync::Arc;
use std::time::Duration;

const DUE: MetricSpec = MetricSpec {
    name: "load_due",
    unit: "",
    help: "Requests that became due; none in a closed loop",
};
const REQUESTS: MetricSpec = MetricSpec {
    name: "load_requests",
    unit: "",
    help: "Requests that ended, by kind and status of the response; status 0 is a failure without one",
};
const ERRORS: MetricSpec = MetricSpec {
    name: "load_errors",
    unit: "",
    help: "Failed requests, by kind of failure; `status` is a response with a status of 400 or more",
};
const RESPONSE_BYTES: MetricSpec = MetricSpec {
    name: "load_response",
    unit: "bytes",
    help: "Bytes of response bodies received",
};
const FROM_DUE: MetricSpec = MetricSpec {
    name: "load_latency_from_due",
    unit: "seconds",
    help: "Time from the due time of a request to its end, including failures; none in a closed loop",
};
const FROM_SENT: MetricSpec = MetricSpec {
    name: "load_latency_from_sent",
    unit: "seconds",
    help: "Time from sending a request to its end",
};
const LATENESS: MetricSpec = MetricSpec {
    name: "load_generator_lateness",
    unit: "seconds",
    help: "Lateness of the generator in starting requests that had a free connection",
};
const IN_FLIGHT: MetricSpec = MetricSpec {
    name: "load_requests_in_flight",
    unit: "",
    help: "Requests that were started and have not ended",
};
const CONNECTIONS: MetricSpec = MetricSpec {
    name: "load_connections_open",
    unit: "",
    help: "Connections open at the end of the last second",
};

/// Value of the label `error` for responses with a status of 400 or more.
const STATUS_ERROR: &str = "status";

/// The metrics of a run.
#[derive(Clone)]
pub struct RunMetrics {
    registry: Metrics,
    due: Counter,
    requests: CounterFamily,
    errors: CounterFamily,
    bytes: Counter,
    from_due: Arc<DurationHistogram>,
    from_sent: Arc<DurationHistogram>,
    lateness: Arc<DurationHistogram>,
    in_flight: Gauge,
    connections: Gauge,
}

impl RunMetrics {
    /// Registers the metrics of a run, and the general metrics of this process.
    pub fn new() -> RunMetrics {
        let registry = Metrics::of_process("load rate");
        let names = FailureKind::ALL.map(FailureKind::name);
        RunMetrics {
            due: registry.counter(&DUE),
            requests: registry.counter_family(&REQUESTS, &["kind", "status"]),
            errors: registry
                .counter_family(&ERRORS, &["error"])
                .with_initialized_counters(&[STATUS_ERROR])
                .with_initialized_counters(&names.each_ref().map(String::as_str)),
            bytes: registry.counter(&RESPONSE_BYTES),
            from_due: registry.duration_histogram(&FROM_DUE),
            from_sent: registry.duration_histogram(&FROM_SENT),
            lateness: registry.duration_histogram(&LATENESS),
            in_flight: registry.gauge(&IN_FLIGHT),
            connections: registry.gauge(&CONNECTIONS),
            registry,
        }
    }

    /// Returns the registry that contains these metrics.
    pub fn metrics_registry(&self) -> &Metrics {
        &self.registry
    }
}

impl Default for RunMetrics {
    fn default() -> RunMetrics {
        RunMetrics::new()
    }
}

/// The metrics of a run for one thread. Each labeled counter is looked up only once per thread.
pub(super) struct ThreadMetrics {
    shared: RunMetrics,
    closed_loop: bool,
    requests: Vec<((RequestKind, u16), Counter)>,
    errors: Vec<(Option<FailureKind>, Counter)>,
}

impl ThreadMetrics {
    pub(super) fn new(shared: &RunMetrics, closed_loop: bool) -> ThreadMetrics {
        ThreadMetrics {
            shared: shared.clone(),
            closed_loop,
            requests: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn count_due(&self) {
        self.shared.due.inc();
    }

    pub(super) fn record_lag(&self, lag: Duration) {
        self.shared.lateness.observe(lag);
    }

    pub(super) fn count_request_start(&self) {
        self.shared.in_flight.inc();
    }

    pub(super) fn count_request_end(&self) {
        self.shared.in_flight.dec();
    }

    pub(super) fn set_connections_gauge(&self, open: u64) {
        let open = i64::try_from(open).unwrap_or(i64::MAX);
        self.shared.connections.set(open);
    }

    /// Counts a request that completed or failed.
    pub(super) fn count_request(&mut self, kind: RequestKind, request: &FinishedRequest) {
        let shared = &self.shared;
        let labels = (kind, request.status);
        find_or_create_counter(&mut self.requests, labels, || {
            let status = request.status.to_string();
            shared.requests.with_labels(&[kind.name(), &status])
        })
        .inc();
        if request.fault.is_some() || request.status >= 400 {
            let new = || {
                let name = request.fault.map(FailureKind::name);
                let name = name.as_deref().unwrap_or(STATUS_ERROR);
                shared.errors.with_labels(&[name])
            };
            find_or_create_counter(&mut self.errors, request.fault, new).inc();
        }
        shared.bytes.inc_by(request.bytes);
        let since = |from| request.end.saturating_duration_since(from);
        if !self.closed_loop {
            shared.from_due.observe(since(request.due));
        }
        if let Some(sent) = request.sent {
            shared.from_sent.observe(since(sent));
        }
    }
}

/// Returns the counter with these labels. A linear search is fast enough, because there are few
/// counters. If the counter does not exist yet, `new` creates it.
fn find_or_create_counter<T: PartialEq>(
    known: &mut Vec<(T, Counter)>,
    labels: T,
    new: impl FnOnce() -> Counter,
) -> &Counter {
    let place = known.iter().position(|(of, _)| *of == labels);
    let place = place.unwrap_or_else(|| {
        known.push((labels, new()));
        known.len() - 1
    });
    &known[place].1
}
