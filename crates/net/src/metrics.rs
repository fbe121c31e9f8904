//! Metrics. A [`MetricSpec`] declares the name, unit and help text of each, and `/metrics` shows
//! all of them in the OpenMetrics text format.
//!
//! Handles are resolved once; counting is one relaxed atomic addition.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
pub use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family as Inner, MetricConstructor};
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::{Body, Error};

/// Prefix of every name.
const PREFIX: &str = "headwater";

/// One metric's declaration.
#[derive(Debug, Clone, Copy)]
pub struct MetricSpec {
    /// The name without the prefix `headwater_`, the unit, and a counter's `_total`.
    pub name: &'static str,
    /// The unit, such as `bytes` or `seconds`, printed as the name's suffix. Empty for a plain
    /// number.
    pub unit: &'static str,
    /// The help text: a sentence without a final period.
    pub help: &'static str,
}

/// All metrics of a process. Cheap to clone; all clones share the same registry.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

/// A counter per combination of label values.
#[derive(Debug, Clone)]
pub struct CounterFamily {
    labels: &'static [&'static str],
    inner: Inner<Vec<(&'static str, String)>, Counter>,
}

impl Metrics {
    /// Creates an empty registry.
    pub fn new() -> Metrics {
        Metrics {
            registry: Arc::new(Mutex::new(Registry::with_prefix(PREFIX))),
        }
    }

    /// Registers a number that only grows.
    pub fn counter(&self, row: &MetricSpec) -> Counter {
        let counter = Counter::default();
        self.register_metric(row, counter.clone());
        counter
    }

    /// Registers a number that goes up and down.
    pub fn gauge(&self, row: &MetricSpec) -> Gauge {
        let gauge = Gauge::default();
        self.register_metric(row, gauge.clone());
        gauge
    }

    /// Registers a counter per combination of label values.
    pub fn family(&self, row: &MetricSpec, labels: &'static [&'static str]) -> CounterFamily {
        let inner = Inner::default();
        self.register_metric(row, inner.clone());
        CounterFamily { labels, inner }
    }

    /// Registers a histogram per value of one label; `buckets` are upper bounds.
    pub fn histograms(
        &self,
        row: &MetricSpec,
        label: &'static str,
        buckets: &'static [f64],
    ) -> HistogramFamily {
        let inner = LabeledHistograms::new_with_constructor(BucketBounds(buckets));
        self.register_metric(row, inner.clone());
        HistogramFamily { label, inner }
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn encode_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// Returns the response to `GET /metrics`.
    pub fn response(&self) -> Response<Body> {
        const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let Ok(text) = self.encode_text() else {
            return Error::internal("cannot print the metrics").response();
        };
        let mut response = Response::new(Body::full(text));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(TYPE));
        response
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn register_metric(&self, row: &MetricSpec, metric: impl prometheus_client::registry::Metric) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match row.unit {
            "" => registry.register(row.name, row.help, metric),
            unit => {
                let unit = Unit::Other(unit.to_owned());
                registry.register_with_unit(row.name, row.help, unit, metric);
            }
        }
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

type LabeledHistograms = Inner<Vec<(&'static str, String)>, Histogram, BucketBounds>;

#[derive(Clone)]
struct BucketBounds(&'static [f64]);

impl MetricConstructor<Histogram> for BucketBounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// A histogram per value of one label.
#[derive(Clone)]
pub struct HistogramFamily {
    label: &'static str,
    inner: LabeledHistograms,
}

impl HistogramFamily {
    /// Records one value.
    pub fn observe(&self, label: &str, value: f64) {
        let labels = vec![(self.label, label.to_owned())];
        self.inner.get_or_create(&labels).observe(value);
    }
}

impl CounterFamily {
    /// Returns the counter of these label values, in the order of the declaration. Store the
    /// counter: finding it takes a lock.
    pub fn with_labels(&self, values: &[&str]) -> Counter {
        let pairs = self.labels.iter().zip(values);
        let labels = pairs
            .map(|(label, value)| (*label, (*value).to_owned()))
            .collect();
        self.inner.get_or_create_owned(&labels)
    }
}

const REQUESTS: MetricSpec = MetricSpec {
    name: "http_requests",
    unit: "",
    help: "Requests served",
};
const RESPONSE_BYTES: MetricSpec = MetricSpec {
    name: "http_response",
    unit: "bytes",
    help: "Bytes of response bodies sent",
};

/// Statuses with a cached counter of their own.
const STATUSES: [u16; 20] = [
    200, 204, 206, 301, 304, 400, 403, 404, 405, 406, 408, 410, 412, 414, 415, 416, 500, 502, 503,
    504,
];

/// Counters of requests by kind and status, and of bytes by kind. After its first use, a counter is
/// found without a lock.
#[derive(Debug, Clone)]
pub struct TrafficMetrics {
    inner: Arc<TrafficCells>,
}

#[derive(Debug)]
struct TrafficCells {
    kinds: &'static [&'static str],
    requests: CounterFamily,
    cells: Vec<[OnceLock<Counter>; STATUSES.len()]>,
    bytes: Vec<Counter>,
}

impl TrafficMetrics {
    /// Registers both metrics for these kinds.
    pub fn new(metrics: &Metrics, kinds: &'static [&'static str]) -> TrafficMetrics {
        let requests = metrics.family(&REQUESTS, &["kind", "status"]);
        let bytes = metrics.family(&RESPONSE_BYTES, &["kind"]);
        let cells = kinds.iter().map(|_| Default::default()).collect();
        let bytes = kinds
            .iter()
            .map(|kind| bytes.with_labels(&[kind]))
            .collect();
        TrafficMetrics {
            inner: Arc::new(TrafficCells {
                kinds,
                requests,
                cells,
                bytes,
            }),
        }
    }

    /// Counts one response with this status; `kind` is an index into the declared kinds.
    pub fn count_request(&self, kind: usize, status: StatusCode) {
        let TrafficCells {
            kinds,
            requests,
            cells,
            ..
        } = &*self.inner;
        let (Some(name), Some(row)) = (kinds.get(kind), cells.get(kind)) else {
            return;
        };
        let place = STATUSES.iter().position(|known| *known == status.as_u16());
        let make = || requests.with_labels(&[name, status.as_str()]);
        match place.and_then(|place| row.get(place)) {
            Some(cell) => cell.get_or_init(make).inc(),
            None => make().inc(),
        };
    }

    /// Counts `bytes` sent; `kind` is an index into the declared kinds.
    pub fn count_bytes(&self, kind: usize, bytes: u64) {
        if let Some(counter) = self.inner.bytes.get(kind) {
            counter.inc_by(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_contains_name_unit_help_labels_and_number() {
        let metrics = Metrics::new();
        let traffic = TrafficMetrics::new(&metrics, &["segment", "playlist"]);
        traffic.count_request(0, StatusCode::OK);
        traffic.count_request(0, StatusCode::OK);
        traffic.count_request(1, StatusCode::IM_A_TEAPOT);
        traffic.count_request(7, StatusCode::OK);
        traffic.count_bytes(0, 1000);
        let row = MetricSpec {
            name: "storage_connections_open",
            unit: "",
            help: "Connections",
        };
        metrics.gauge(&row).set(3);
        let text = metrics.encode_text().unwrap();
        let lines = [
            "# HELP headwater_http_requests Requests served.",
            "headwater_http_requests_total{kind=\"segment\",status=\"200\"} 2",
            "headwater_http_requests_total{kind=\"playlist\",status=\"418\"} 1",
            "# TYPE headwater_http_response_bytes counter",
            "headwater_http_response_bytes_total{kind=\"segment\"} 1000",
            "headwater_storage_connections_open 3",
            "# EOF",
        ];
        for line in lines {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
