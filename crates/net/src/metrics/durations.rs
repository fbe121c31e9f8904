//! Histograms of durations, which are recorded without a lock and without an allocation.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

use super::{MetricSpec, Metrics};
use crate::body::BodyCompletion;

/// Upper bounds of the buckets: from a response out of memory to a viewer on a slow link. 300 ms is the
/// objective of `deploy/prometheus/alerts.yaml`.
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

/// A histogram of durations from 100 µs to 30 s.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    /// Counts per bucket, not cumulative; the last one has no bound.
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_us: AtomicU64,
}

impl DurationHistogram {
    /// Counts one duration: a search in 18 bounds and two relaxed additions.
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let place = BOUNDS_NS.partition_point(|bound| *bound < ns);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_us.fetch_add(ns / 1000, Relaxed);
    }

    fn encode_to(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let seconds = BOUNDS_NS.iter().map(|ns| *ns as f64 / 1e9);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<_> = seconds.chain([f64::INFINITY]).zip(counts).collect();
        // The sum of the buckets that are written, so that the count never differs from the last one.
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

/// The histograms of one label value.
#[derive(Debug, Default)]
struct TimingHistograms {
    duration: DurationHistogram,
    first_byte: DurationHistogram,
}

/// One of the two histograms, per value of a label.
#[derive(Debug)]
struct TimingFamily {
    label: &'static str,
    values: &'static [&'static str],
    histograms: Arc<[TimingHistograms]>,
    select: fn(&TimingHistograms) -> &DurationHistogram,
}

impl EncodeMetric for TimingFamily {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        for (value, histograms) in self.values.iter().zip(&*self.histograms) {
            let labels = [(self.label, *value)];
            (self.select)(histograms).encode_to(encoder.encode_family(&labels)?)?;
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

/// Histograms of the time that requests take, per value of one label. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RequestHistograms {
    histograms: Arc<[TimingHistograms]>,
}

impl RequestHistograms {
    /// Registers both histograms, with a label that has these values.
    pub fn new(
        metrics: &Metrics,
        label: &'static str,
        values: &'static [&'static str],
    ) -> RequestHistograms {
        let histograms: Arc<[_]> = values.iter().map(|_| Default::default()).collect();
        let family = |select| TimingFamily {
            label,
            values,
            histograms: Arc::clone(&histograms),
            select,
        };
        metrics.register_metric(&DURATION, family(|all| &all.duration));
        metrics.register_metric(&FIRST_BYTE, family(|all| &all.first_byte));
        RequestHistograms { histograms }
    }

    /// Records a request that arrived at `began`, and whose body was timed; `index` is that of the
    /// label's value.
    pub fn record_request(&self, index: usize, began: Instant, end: &BodyCompletion) {
        let (Some(histograms), Some(finished)) = (self.histograms.get(index), end.finished) else {
            return;
        };
        histograms.duration.observe(finished - began);
        if let Some(first_byte) = end.first_byte {
            histograms.first_byte.observe(first_byte - began);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_every_bucket_that_contains_it() {
        let metrics = Metrics::new();
        let timings = RequestHistograms::new(&metrics, "kind", &["segment", "page"]);
        let began = Instant::now();
        let end_after = |us| BodyCompletion {
            bytes: 1,
            complete: true,
            first_byte: Some(began + Duration::from_micros(100)),
            finished: Some(began + Duration::from_micros(us)),
            error: None,
        };
        for us in [100, 101, 60_000_000] {
            timings.record_request(0, began, &end_after(us));
        }
        timings.record_request(2, began, &end_after(1));
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
