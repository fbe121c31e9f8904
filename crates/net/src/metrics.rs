//! Counters, declared once each: name, unit and prose in one [`Row`], shown at `/metrics` in the
//! OpenMetrics text format. Handles are resolved once; counting is one relaxed atomic addition.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
pub use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family as Inner, MetricConstructor};
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::{Body, Error};

/// Put before every name.
const PREFIX: &str = "headwater";

/// One metric's declaration.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Without the prefix `headwater_`, the unit, and a counter's `_total`.
    pub name: &'static str,
    /// `bytes`, `seconds`, …; printed as the name's ending. Empty: a plain number of things.
    pub unit: &'static str,
    /// What is counted, in a sentence without a full stop.
    pub help: &'static str,
}

/// All metrics of a process. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

/// One number per combination of labels.
#[derive(Debug, Clone)]
pub struct Family {
    labels: &'static [&'static str],
    inner: Inner<Vec<(&'static str, String)>, Counter>,
}

impl Metrics {
    /// No rows yet.
    pub fn new() -> Metrics {
        Metrics {
            registry: Arc::new(Mutex::new(Registry::with_prefix(PREFIX))),
        }
    }

    /// A number that only grows.
    pub fn counter(&self, row: &Row) -> Counter {
        let counter = Counter::default();
        self.register(row, counter.clone());
        counter
    }

    /// A number that goes up and down.
    pub fn gauge(&self, row: &Row) -> Gauge {
        let gauge = Gauge::default();
        self.register(row, gauge.clone());
        gauge
    }

    /// Growing numbers told apart by labels.
    pub fn family(&self, row: &Row, labels: &'static [&'static str]) -> Family {
        let inner = Inner::default();
        self.register(row, inner.clone());
        Family { labels, inner }
    }

    /// Spread of a number, told apart by one label; `buckets` are upper bounds.
    pub fn histograms(
        &self,
        row: &Row,
        label: &'static str,
        buckets: &'static [f64],
    ) -> Histograms {
        let inner = Spread::new_with_constructor(Buckets(buckets));
        self.register(row, inner.clone());
        Histograms { label, inner }
    }

    /// All rows as text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// The answer to `GET /metrics`.
    pub fn response(&self) -> Response<Body> {
        const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let Ok(text) = self.text() else {
            return Error::internal("the metrics could not be printed").response();
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

    fn register(&self, row: &Row, metric: impl prometheus_client::registry::Metric) {
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

type Spread = Inner<Vec<(&'static str, String)>, Histogram, Buckets>;

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Spreads of one number, told apart by a label.
#[derive(Clone)]
pub struct Histograms {
    label: &'static str,
    inner: Spread,
}

impl Histograms {
    /// Counts one value.
    pub fn observe(&self, label: &str, value: f64) {
        let labels = vec![(self.label, label.to_owned())];
        self.inner.get_or_create(&labels).observe(value);
    }
}

impl Family {
    /// The counter of these label values, in the order of the declaration. Keep it: finding it
    /// takes a lock.
    pub fn of(&self, values: &[&str]) -> Counter {
        let pairs = self.labels.iter().zip(values);
        let labels = pairs
            .map(|(label, value)| (*label, (*value).to_owned()))
            .collect();
        self.inner.get_or_create_owned(&labels)
    }
}

const REQUESTS: Row = Row {
    name: "http_requests",
    unit: "",
    help: "Requests answered",
};
const RESPONSE_BYTES: Row = Row {
    name: "http_response",
    unit: "bytes",
    help: "Bytes of response bodies sent",
};

/// The statuses that have a cell of their own; the last row takes all others.
const STATUSES: [u16; 20] = [
    200, 204, 206, 301, 304, 400, 403, 404, 405, 406, 408, 410, 412, 414, 415, 416, 500, 502, 503,
    504,
];

/// Requests by kind and status, and bytes by kind, found without a lock once seen.
#[derive(Debug, Clone)]
pub struct Traffic {
    inner: Arc<Cells>,
}

#[derive(Debug)]
struct Cells {
    kinds: &'static [&'static str],
    requests: Family,
    cells: Vec<[OnceLock<Counter>; STATUSES.len()]>,
    bytes: Vec<Counter>,
}

impl Traffic {
    /// Declares both rows for these kinds.
    pub fn new(metrics: &Metrics, kinds: &'static [&'static str]) -> Traffic {
        let requests = metrics.family(&REQUESTS, &["kind", "status"]);
        let bytes = metrics.family(&RESPONSE_BYTES, &["kind"]);
        let cells = kinds.iter().map(|_| Default::default()).collect();
        let bytes = kinds.iter().map(|kind| bytes.of(&[kind])).collect();
        Traffic {
            inner: Arc::new(Cells {
                kinds,
                requests,
                cells,
                bytes,
            }),
        }
    }

    /// One request of the kind with this place in the list was answered so.
    pub fn request(&self, kind: usize, status: StatusCode) {
        let Cells {
            kinds,
            requests,
            cells,
            ..
        } = &*self.inner;
        let (Some(name), Some(row)) = (kinds.get(kind), cells.get(kind)) else {
            return;
        };
        let place = STATUSES.iter().position(|known| *known == status.as_u16());
        let make = || requests.of(&[name, status.as_str()]);
        match place.and_then(|place| row.get(place)) {
            Some(cell) => cell.get_or_init(make).inc(),
            None => make().inc(),
        };
    }

    /// So many bytes of this kind were sent.
    pub fn bytes(&self, kind: usize, bytes: u64) {
        if let Some(counter) = self.inner.bytes.get(kind) {
            counter.inc_by(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_name_unit_help_labels_and_number() {
        let metrics = Metrics::new();
        let traffic = Traffic::new(&metrics, &["segment", "playlist"]);
        traffic.request(0, StatusCode::OK);
        traffic.request(0, StatusCode::OK);
        traffic.request(1, StatusCode::IM_A_TEAPOT);
        traffic.request(7, StatusCode::OK);
        traffic.bytes(0, 1000);
        let row = Row {
            name: "storage_connections_open",
            unit: "",
            help: "Connections",
        };
        metrics.gauge(&row).set(3);
        let text = metrics.text().unwrap();
        let lines = [
            "# HELP headwater_http_requests Requests answered.",
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
