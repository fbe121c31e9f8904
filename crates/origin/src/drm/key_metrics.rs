//! Counters of requests to key sources.

use net::metrics::{Counter, MetricSpec, Metrics};

const KEY_REQUESTS: MetricSpec = MetricSpec {
    name: "key_requests",
    unit: "",
    help: "Key loads from files or a key server: loaded, stale (failed, cached keys are used), or failed",
};

/// Counts how often keys were loaded, by result.
#[derive(Debug, Clone)]
pub(crate) struct KeyMetrics {
    pub(super) loaded: Counter,
    pub(super) stale: Counter,
    pub(super) failed: Counter,
}

impl KeyMetrics {
    pub(crate) fn new(metrics: &Metrics) -> KeyMetrics {
        let requests = metrics.counter_family(&KEY_REQUESTS, &["result"]);
        let of_result = |result| requests.with_labels(&[result]);
        KeyMetrics {
            loaded: of_result("loaded"),
            stale: of_result("stale"),
            failed: of_result("failed"),
        }
    }
}
