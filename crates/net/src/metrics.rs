//! Metrics. A [`MetricSpec`] declares the name, unit and help text of one metric. `/metrics`
//! returns all metrics in the text format that the scraper prefers.
//!
//! Callers look up the handle of a metric once and store it. Counting then costs one relaxed atomic
//! addition.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use http::StatusCode;
pub use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family as Inner, MetricConstructor};
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use self::durations::DurationMetric;
pub use self::durations::{DurationHistogram, RequestHistograms};
use self::exemplars::ExemplarTable;
pub use self::multi_label_histogram::MultiLabelHistogram;
use self::process::ProcessCollector;
pub(crate) use self::scrape_gauge::SampleLabels;
use self::scrape_gauge::{ScrapeGauge, ScrapeGaugeFamily};

mod durations;
mod exemplars;
mod multi_label_histogram;
mod process;
mod scrape_gauge;
mod scrape_response;
mod text_format;

/// Prefix of every metric name. Only the metrics of the process have no prefix.
const PREFIX: &str = "headwater";

/// The declaration of one metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricSpec {
    /// The name without the prefix `headwater_`, without the unit, and without a counter's
    /// `_total`.
    pub name: &'static str,
    /// The unit, such as `bytes` or `seconds`, which becomes the suffix of the name. Empty for a
    /// number without a unit.
    pub unit: &'static str,
    /// The help text: a sentence without a final period.
    pub help: &'static str,
}

/// All metrics of a process. Cheap to clone; all clones share the same registry.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    exemplars: Arc<ExemplarTable>,
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
            registry: Arc::new(Mutex::new(Registry::default())),
            exemplars: Arc::default(),
        }
    }

    /// Creates a registry with the metrics of this process. `program` is the subcommand of
    /// `headwater` that this process runs.
    pub fn of_process(program: &'static str) -> Metrics {
        let metrics = Metrics::new();
        metrics
            .lock()
            .register_collector(Box::new(ProcessCollector::new()));
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("program", program),
            ("architecture", std::env::consts::ARCH),
        ];
        metrics.register_metric(&BUILD, Info::new(labels));
        metrics
    }

    /// Registers a number that only increases.
    pub fn counter(&self, row: &MetricSpec) -> Counter {
        let counter = Counter::default();
        self.register_metric(row, counter.clone());
        counter
    }

    /// Registers a number that can increase and decrease.
    pub fn gauge(&self, row: &MetricSpec) -> Gauge {
        let gauge = Gauge::default();
        self.register_metric(row, gauge.clone());
        gauge
    }

    /// Registers a counter per combination of label values.
    pub fn counter_family(
        &self,
        row: &MetricSpec,
        labels: &'static [&'static str],
    ) -> CounterFamily {
        let inner = Inner::default();
        self.register_metric(row, inner.clone());
        CounterFamily { labels, inner }
    }

    /// Registers a histogram per value of one label. `buckets` are the upper bounds of the buckets.
    pub fn histogram_family(
        &self,
        row: &MetricSpec,
        label: &'static str,
        buckets: &'static [f64],
    ) -> HistogramFamily {
        let inner = LabeledHistograms::new_with_constructor(BucketBounds(buckets));
        self.register_metric(row, inner.clone());
        HistogramFamily { label, inner }
    }

    /// Registers a histogram without labels. `buckets` are the upper bounds of the buckets.
    pub fn histogram(&self, row: &MetricSpec, buckets: &'static [f64]) -> Histogram {
        let histogram = Histogram::new(buckets.iter().copied());
        self.register_metric(row, histogram.clone());
        histogram
    }

    /// Registers a histogram of durations.
    pub fn duration_histogram(&self, row: &MetricSpec) -> Arc<DurationHistogram> {
        let histogram = Arc::<DurationHistogram>::default();
        self.register_metric(row, DurationMetric(Arc::clone(&histogram)));
        histogram
    }

    /// Registers a gauge. `read` returns the gauge's value whenever the metrics are requested. If
    /// `read` returns `None`, the gauge has no sample.
    pub(crate) fn register_scrape_gauge(
        &self,
        row: &MetricSpec,
        read: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) {
        self.register_metric(row, ScrapeGauge(Box::new(read)));
    }

    /// Registers a gauge per combination of label values. `read` returns all samples whenever the
    /// metrics are requested.
    pub(crate) fn register_scrape_gauge_family(
        &self,
        row: &MetricSpec,
        read: impl Fn() -> Vec<(SampleLabels, u64)> + Send + Sync + 'static,
    ) {
        self.register_metric(row, ScrapeGaugeFamily(Box::new(read)));
    }

    /// Returns all metrics in the OpenMetrics text format, without exemplars.
    pub fn encode_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.lock())?;
        Ok(text)
    }

    fn register_metric(&self, row: &MetricSpec, metric: impl prometheus_client::registry::Metric) {
        let name = format!("{PREFIX}_{}", row.name);
        let mut registry = self.lock();
        match row.unit {
            "" => registry.register(name, row.help, metric),
            unit => {
                let unit = Unit::Other(unit.to_owned());
                registry.register_with_unit(name, row.help, unit, metric);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Records one value in the histogram of a label value.
    pub fn observe(&self, label: &str, value: f64) {
        let labels = vec![(self.label, label.to_owned())];
        self.inner.get_or_create(&labels).observe(value);
    }
}

impl CounterFamily {
    /// Creates one counter per value of the family's only label, before any event. If a counter
    /// appeared only with its first event, Prometheus would miss this first increase.
    #[must_use]
    pub fn with_initialized_counters(self, values: &[&str]) -> CounterFamily {
        for value in values {
            self.with_labels(&[value]);
        }
        self
    }

    /// Returns the counter of these label values, which must be in the order of the declared
    /// labels. Callers should store the counter, because the look-up takes a lock.
    pub fn with_labels(&self, values: &[&str]) -> Counter {
        let pairs = self.labels.iter().zip(values);
        let labels = pairs
            .map(|(label, value)| (*label, (*value).to_owned()))
            .collect();
        self.inner.get_or_create_owned(&labels)
    }
}

/// Counts spans that were not exported. Each server with tracing registers this metric.
pub const TRACE_SPANS_DROPPED: MetricSpec = MetricSpec {
    name: "trace_spans_dropped",
    unit: "",
    help: "Spans lost because the collector was slow or unreachable",
};
const BUILD: MetricSpec = MetricSpec {
    name: "build",
    unit: "",
    help: "Version, command and processor architecture of the program",
};
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

/// Status codes whose counters are cached.
const STATUSES: [u16; 20] = [
    200, 204, 206, 301, 304, 400, 403, 404, 405, 406, 408, 410, 412, 414, 415, 416, 500, 502, 503,
    504,
];

/// Counters of requests by kind and status, and counters of sent bytes by kind. After its first
/// use, a counter of a status in `STATUSES` is found without a lock.
#[derive(Debug, Clone)]
pub struct TrafficMetrics {
    inner: Arc<TrafficCounters>,
}

#[derive(Debug)]
struct TrafficCounters {
    kinds: &'static [&'static str],
    requests: CounterFamily,
    cells: Vec<[OnceLock<Counter>; STATUSES.len()]>,
    bytes: Vec<Counter>,
}

impl TrafficMetrics {
    /// Registers both metrics. `kinds` are the values of the label `kind`.
    pub fn new(metrics: &Metrics, kinds: &'static [&'static str]) -> TrafficMetrics {
        let requests = metrics.counter_family(&REQUESTS, &["kind", "status"]);
        let bytes = metrics.counter_family(&RESPONSE_BYTES, &["kind"]);
        let cells = kinds.iter().map(|_| Default::default()).collect();
        let bytes = kinds
            .iter()
            .map(|kind| bytes.with_labels(&[kind]))
            .collect();
        TrafficMetrics {
            inner: Arc::new(TrafficCounters {
                kinds,
                requests,
                cells,
                bytes,
            }),
        }
    }

    /// Counts one response with this status. `kind` is an index into the declared kinds.
    pub fn count_request(&self, kind: usize, status: StatusCode) {
        let TrafficCounters {
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

    /// Adds `bytes` to the sent bytes of a kind. `kind` is an index into the declared kinds.
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
