//! What is counted of origins' work.

use net::metrics::{Counter, Family, Gauge, Metrics, Row};

const REQUESTS: Row = Row {
    name: "upstream_requests",
    unit: "",
    help: "Requests sent to origins, by what came of them",
};
const CONNECTIONS: Row = Row {
    name: "upstream_connections_opened",
    unit: "",
    help: "Connections opened to origins",
};
const RETRIES: Row = Row {
    name: "upstream_retries",
    unit: "",
    help: "Requests that went to a second origin, or did not since the budget was spent",
};
const OUT: Row = Row {
    name: "upstream_out",
    unit: "",
    help: "Times that an origin was taken out since it failed",
};
const OUT_NOW: Row = Row {
    name: "upstream_out_now",
    unit: "",
    help: "Origins that are not asked now since they failed",
};

/// What counts origins' work, and what stays as it is when the settings change. All clones are one.
#[derive(Debug, Clone)]
pub struct Counts {
    pub(super) requests: Family,
    pub(super) opened: Counter,
    pub(super) retries: Family,
    pub(super) out: Family,
    pub(super) out_now: Gauge,
    /// Threads that ask, each with connections of its own.
    pub(super) workers: usize,
}

impl Counts {
    pub fn new(metrics: &Metrics, workers: usize) -> Counts {
        Counts {
            workers,
            requests: metrics.family(&REQUESTS, &["origin", "result"]),
            opened: metrics.counter(&CONNECTIONS),
            retries: metrics.family(&RETRIES, &["result"]),
            out: metrics.family(&OUT, &["origin"]),
            out_now: metrics.gauge(&OUT_NOW),
        }
    }
}
