//! Histograms of durations. Recording a duration takes no lock and allocates no memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

use super::exemplars::ExemplarTable;
use super::{MetricSpec, Metrics, PREFIX};
use crate::body::BodyCompletion;

/// Upper bounds of the buckets in nanoseconds. The small bounds are for responses from memory, the
/// large bounds for responses on slow links. The latency objective in
/// `deploy/prometheus/alerts.yaml` needs the bound of 300 ms.
const BOUNDS_NS: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    300_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// A histogram of durations, with bucket bounds from 100 µs to 30 s.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    /// The count of each bucket, not cumulative. The last bucket has no upper bound.
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_us: AtomicU64,
}

impl DurationHistogram {
    /// Counts one duration. This costs a search in 18 bounds and two relaxed atomic additions.
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let place = BOUNDS_NS.partition_point(|bound| *bound < ns);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_us.fetch_add(ns / 1000, Relaxed);
    }

    /// Returns whether the histogram has counted nothing.
    fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.load(Relaxed) == 0)
    }

    fn encode_to(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let seconds = BOUNDS_NS.iter().map(|ns| *ns as f64 / 1e9);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<_> = seconds.chain([f64::INFINITY]).zip(counts).collect();
        // The exported count is the sum of the exported buckets, so that the count always equals
        // the last cumulative bucket.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum_us.load(Relaxed) as f64 / 1e6;
        let exemplars = None::<&HashMap<usize, Exemplar<NoLabelSet, f64>>>;
        encoder.encode_histogram(sum, count, &buckets, exemplars)
    }
}

/// A shared [`DurationHistogram`] as a metric.
#[derive(Debug)]
pub(super) struct DurationMetric(pub(super) Arc<DurationHistogram>);

impl EncodeMetric for DurationMetric {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.encode_to(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The name and the value of a label.
type LabelPair = (&'static str, &'static str);

/// The name of a label and all its values.
type LabelAndValues = (&'static str, &'static [&'static str]);

/// The histograms of one label value, or of one pair of label values.
#[derive(Debug, Default)]
struct TimingHistograms {
    labels: Vec<LabelPair>,
    duration: DurationHistogram,
    first_byte: DurationHistogram,
}

/// The histograms of all label values, or of all pairs of label values.
#[derive(Debug)]
struct TimingHistogramTable {
    /// One entry per label value, in the declared order. Pairs are ordered by the first value, then
    /// by the second value.
    histograms: Box<[TimingHistograms]>,
    /// Whether empty histograms are exported.
    exports_empty: bool,
    exemplars: Arc<ExemplarTable>,
}

/// One of the two metrics (request duration or time to the first byte), with a histogram per label
/// value or pair of label values.
#[derive(Debug)]
struct TimingFamily {
    table: Arc<TimingHistogramTable>,
    select: fn(&TimingHistograms) -> &DurationHistogram,
}

impl EncodeMetric for TimingFamily {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let table = &*self.table;
        for histograms in &table.histograms {
            let histogram = (self.select)(histograms);
            if table.exports_empty || !histogram.is_empty() {
                let labels = &histograms.labels.as_slice();
                histogram.encode_to(encoder.encode_family(labels)?)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

const DURATION: MetricSpec = MetricSpec {
    name: "http_request_duration",
    unit: "seconds",
    help: "Time from a request's header to the last byte of its response, given to the kernel or to TLS",
};
const FIRST_BYTE: MetricSpec = MetricSpec {
    name: "http_first_byte",
    unit: "seconds",
    help: "Time from a request's header to the first byte of its response's body; none without a body",
};

/// Histograms of request durations and of times to the first byte. Each label value, or each pair
/// of values of two labels, has its own two histograms. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RequestHistograms {
    table: Arc<TimingHistogramTable>,
}

impl RequestHistograms {
    /// Registers both metrics with one label. `values` are the possible values of the label.
    pub fn new(
        metrics: &Metrics,
        label: &'static str,
        values: &'static [&'static str],
    ) -> RequestHistograms {
        let rows = values.iter().map(|value| vec![(label, *value)]);
        RequestHistograms::register_histograms(metrics, rows, true)
    }

    /// Registers both metrics with two labels. Pairs of label values are ordered by the first
    /// value, then by the second value. Pair (i, j) therefore has the index
    /// `i * second_values.len() + j`. A pair is exported only after its first request, because most
    /// pairs never occur.
    pub fn with_label_pairs(
        metrics: &Metrics,
        (first, first_values): LabelAndValues,
        (second, second_values): LabelAndValues,
    ) -> RequestHistograms {
        let rows = first_values.iter().flat_map(|a| {
            let pair = move |b: &&'static str| vec![(first, *a), (second, *b)];
            second_values.iter().map(pair)
        });
        RequestHistograms::register_histograms(metrics, rows, false)
    }

    fn register_histograms(
        metrics: &Metrics,
        rows: impl Iterator<Item = Vec<LabelPair>>,
        exports_empty: bool,
    ) -> RequestHistograms {
        let with_labels = |labels| TimingHistograms {
            labels,
            ..TimingHistograms::default()
        };
        let table = Arc::new(TimingHistogramTable {
            histograms: rows.map(with_labels).collect(),
            exports_empty,
            exemplars: metrics.exemplars.clone(),
        });
        let family = |select| TimingFamily {
            table: table.clone(),
            select,
        };
        metrics.register_metric(&DURATION, family(|all| &all.duration));
        metrics.register_metric(&FIRST_BYTE, family(|all| &all.first_byte));
        RequestHistograms { table }
    }

    /// Records a request that arrived at `started`. A request whose body was not timed is ignored.
    /// `index` is the index of the label value or pair.
    pub fn record_request(&self, index: usize, started: Instant, end: &BodyCompletion) {
        let (Some(histograms), Some(finished)) = (self.table.histograms.get(index), end.finished)
        else {
            return;
        };
        histograms.duration.observe(finished - started);
        if let Some(first_byte) = end.first_byte {
            histograms.first_byte.observe(first_byte - started);
        }
    }

    /// Stores a traced request as the exemplar of each bucket in which [`Self::record_request`]
    /// counts the request.
    pub fn record_exemplar(
        &self,
        index: usize,
        started: Instant,
        end: &BodyCompletion,
        trace_id: u128,
    ) {
        let table = &*self.table;
        let (Some(histograms), Some(finished)) = (table.histograms.get(index), end.finished) else {
            return;
        };
        let times = [(&DURATION, Some(finished)), (&FIRST_BYTE, end.first_byte)];
        for (metric, at) in times {
            if let Some(at) = at {
                let bucket = name_bucket(metric, &histograms.labels, at - started);
                table
                    .exemplars
                    .store_exemplar(bucket, trace_id, at - started);
            }
        }
    }
}

/// Returns the name and the labels of the bucket that counts a duration, in the notation of the
/// text format.
fn name_bucket(metric: &MetricSpec, labels: &[LabelPair], duration: Duration) -> String {
    let bound = BOUNDS_NS
        .iter()
        .find(|bound| u128::from(**bound) >= duration.as_nanos());
    let bound = bound.map(|ns| format!("{:?}", *ns as f64 / 1e9));
    let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
    let MetricSpec { name, unit, .. } = metric;
    let labels = labels.iter();
    let labels: String = labels
        .map(|(name, value)| format!(",{name}=\"{value}\""))
        .collect();
    format!("{PREFIX}_{name}_{unit}_bucket{{le=\"{bound}\"{labels}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_every_bucket_that_contains_it() {
        let metrics = Metrics::new();
        let timings = RequestHistograms::new(&metrics, "kind", &["segment", "page"]);
        let started = Instant::now();
        let end_after = |us| BodyCompletion {
            bytes: 1,
            complete: true,
            first_byte: Some(started + Duration::from_micros(100)),
            finished: Some(started + Duration::from_micros(us)),
            error: None,
        };
        for us in [100, 101, 60_000_000] {
            timings.record_request(0, started, &end_after(us));
        }
        timings.record_request(2, started, &end_after(1));
        let text = metrics.encode_text().unwrap();
        for line in [
            "headwater_http_request_duration_seconds_bucket{le=\"0.0001\",kind=\"segment\"} 1",
            "headwater_http_request_duration_seconds_bucket{le=\"0.00025\",kind=\"segment\"} 2",
            "headwater_http_request_duration_seconds_bucket{le=\"30.0\",kind=\"segment\"} 2",
            "headwater_http_request_duration_seconds_bucket{le=\"+Inf\",kind=\"segment\"} 3",
            "headwater_http_request_duration_seconds_count{kind=\"segment\"} 3",
            "headwater_http_request_duration_seconds_sum{kind=\"segment\"} 60.000201",
            "headwater_http_request_duration_seconds_count{kind=\"page\"} 0",
            "headwater_http_first_byte_seconds_bucket{le=\"0.0001\",kind=\"segment\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn each_bucket_has_the_last_traced_request_as_exemplar() {
        let metrics = Metrics::new();
        let timings = RequestHistograms::new(&metrics, "kind", &["segment", "page"]);
        let started = Instant::now();
        let bounds = BOUNDS_NS.iter().map(|ns| Duration::from_nanos(*ns));
        for (n, duration) in bounds.chain([Duration::from_secs(60)]).enumerate() {
            let end = BodyCompletion {
                bytes: 0,
                complete: true,
                first_byte: None,
                finished: Some(started + duration),
                error: None,
            };
            timings.record_request(1, started, &end);
            timings.record_exemplar(1, started, &end, 7);
            timings.record_exemplar(1, started, &end, n as u128 + 1);
            timings.record_exemplar(2, started, &end, 8);
        }
        let plain = metrics.encode_text().unwrap();
        let text = metrics.exemplars.add_exemplars(plain.clone());
        let pairs: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once(" # {"))
            .collect();
        assert_eq!(pairs.len(), BOUNDS_NS.len() + 1, "{text}");
        for (n, (bucket, exemplar)) in pairs.iter().enumerate() {
            assert!(bucket.starts_with("headwater_http_request_duration_seconds_bucket{le=\""));
            assert!(
                bucket.ends_with(&format!(",kind=\"page\"}} {}", n + 1)),
                "{bucket}"
            );
            let id = format!("trace_id=\"{:032x}\"}} ", n + 1);
            assert!(exemplar.starts_with(&id), "{exemplar}");
        }
        assert!(pairs[2].1.contains("} 0.000500000 "), "{}", pairs[2].1);
        assert_eq!(text.lines().count(), plain.lines().count());
    }

    #[test]
    fn pairs_are_exported_with_both_labels_once_they_occurred() {
        let metrics = Metrics::new();
        let results = ("result", &["hit", "miss"][..]);
        let kinds = ("kind", &["segment", "init", "other"][..]);
        let timings = RequestHistograms::with_label_pairs(&metrics, results, kinds);
        let started = Instant::now();
        let end = BodyCompletion {
            bytes: 0,
            complete: true,
            first_byte: None,
            finished: Some(started + Duration::from_micros(1)),
            error: None,
        };
        timings.record_request(4, started, &end);
        timings.record_exemplar(4, started, &end, 7);
        let plain = metrics.encode_text().unwrap();
        let counts: Vec<_> = plain.lines().filter(|l| l.contains("_count{")).collect();
        let labels = "{result=\"miss\",kind=\"init\"}";
        assert_eq!(
            counts,
            [format!(
                "headwater_http_request_duration_seconds_count{labels} 1"
            )]
        );
        let text = metrics.exemplars.add_exemplars(plain);
        let bucket = "_bucket{le=\"0.0001\",result=\"miss\",kind=\"init\"} 1 # {trace_id=";
        assert!(text.contains(bucket), "{text}");
    }

    #[test]
    fn threads_count_together() {
        let histogram = DurationHistogram::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..1000).for_each(|ms| histogram.observe(Duration::from_millis(ms)))
                });
            }
        });
        let count: u64 = histogram
            .buckets
            .iter()
            .map(|bucket| bucket.load(Relaxed))
            .sum();
        assert_eq!(count, 4000);
        assert_eq!(histogram.sum_us.load(Relaxed), 4 * 499_500_000);
    }
}
