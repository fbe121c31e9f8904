//! Metrics of requests to origins.

use net::metrics::{Counter, CounterFamily, DurationHistogram, Gauge, MetricSpec, Metrics};
use std::sync::Arc;
use std::time::Instant;
use upstream::{UpstreamError, UpstreamResponse};

const REQUESTS: MetricSpec = MetricSpec {
    name: "upstream_requests",
    unit: "",
    help: "Requests sent to origins, by result",
};
const CONNECTIONS: MetricSpec = MetricSpec {
    name: "upstream_connections_opened",
    unit: "",
    help: "Connections opened to origins",
};
const RETRIES: MetricSpec = MetricSpec {
    name: "upstream_retries",
    unit: "",
    help: "Retries at a second origin, sent or refused by the retry budget",
};
const RESPONSE_TIME: MetricSpec = MetricSpec {
    name: "upstream_response",
    unit: "seconds",
    help: "Time from a request to an origin until its response header, with the wait for a free connection and with retries",
};
const OUT: MetricSpec = MetricSpec {
    name: "upstream_out",
    unit: "",
    help: "Suspensions of an origin after failures",
};
const OUT_NOW: MetricSpec = MetricSpec {
    name: "upstream_out_now",
    unit: "",
    help: "Origins that are suspended now",
};

/// Metrics of origins, which survive a reload. All clones share their values.
#[derive(Debug, Clone)]
pub struct OriginMetrics {
    pub(super) requests: CounterFamily,
    pub(super) connections_opened: Counter,
    pub(super) retries: CounterFamily,
    response_time: Arc<DurationHistogram>,
    pub(super) suspensions: CounterFamily,
    pub(super) suspended_now: Gauge,
    /// Number of threads with upstream connections of their own.
    pub(super) workers: usize,
}

impl OriginMetrics {
    pub fn new(metrics: &Metrics, workers: usize) -> OriginMetrics {
        OriginMetrics {
            workers,
            requests: metrics.counter_family(&REQUESTS, &["origin", "result"]),
            connections_opened: metrics.counter(&CONNECTIONS),
            retries: metrics
                .counter_family(&RETRIES, &["result"])
                .with_values(&["sent", "spent"]),
            response_time: metrics.durations(&RESPONSE_TIME),
            suspensions: metrics.counter_family(&OUT, &["origin"]),
            suspended_now: metrics.gauge(&OUT_NOW),
        }
    }

    /// Records the time of a request that was sent at `began`, unless no origin responded.
    pub(super) fn record_response_time(
        &self,
        sent: &Result<UpstreamResponse, UpstreamError>,
        began: Instant,
    ) {
        if sent.is_ok() {
            self.response_time.observe(began.elapsed());
        }
    }
}
