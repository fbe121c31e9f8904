//! Metrics of requests to origins.

use super::resolver::ResolutionError;
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
const MEMBERS: MetricSpec = MetricSpec {
    name: "upstream_members",
    unit: "",
    help: "Origins in all pools, configured or found in DNS",
};
const RESOLUTIONS: MetricSpec = MetricSpec {
    name: "upstream_resolutions",
    unit: "",
    help: "Resolutions of origins in DNS, by result; after empty and failed ones, the last addresses are kept",
};

/// Metrics of the origins. All clones update the same values, so the values survive a reload of the
/// settings.
#[derive(Debug, Clone)]
pub struct OriginMetrics {
    pub(super) requests: CounterFamily,
    pub(super) connections_opened: Counter,
    pub(super) retries: CounterFamily,
    response_time: Arc<DurationHistogram>,
    pub(super) suspensions: CounterFamily,
    pub(super) suspended_now: Gauge,
    pub(super) members: Gauge,
    resolutions: CounterFamily,
    /// Number of separate connection pools per origin: one for each worker thread, and one for each
    /// other sender of requests, such as the health probes.
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
                .with_initialized_counters(&["sent", "spent"]),
            response_time: metrics.duration_histogram(&RESPONSE_TIME),
            suspensions: metrics.counter_family(&OUT, &["origin"]),
            suspended_now: metrics.gauge(&OUT_NOW),
            members: metrics.gauge(&MEMBERS),
            resolutions: metrics
                .counter_family(&RESOLUTIONS, &["result"])
                .with_initialized_counters(&["ok", "empty", "failed"]),
        }
    }

    /// Counts a DNS resolution of this origin by result. Logs a failure.
    pub(super) fn record_resolution(&self, origin: &str, found: Result<(), ResolutionError>) {
        let result = match &found {
            Ok(()) => "ok",
            Err(ResolutionError::Empty) => "empty",
            Err(ResolutionError::Failed(_)) => "failed",
        };
        self.resolutions.with_labels(&[result]).inc();
        if let Err(error) = found {
            tracing::warn!(origin, %error, "cannot resolve an origin; keeping its last addresses");
        }
    }

    /// If an origin responded, records the time since `started`, which includes earlier failed
    /// attempts.
    pub(super) fn record_response_time(
        &self,
        sent: &Result<UpstreamResponse, UpstreamError>,
        started: Instant,
    ) {
        if sent.is_ok() {
            self.response_time.observe(started.elapsed());
        }
    }
}
