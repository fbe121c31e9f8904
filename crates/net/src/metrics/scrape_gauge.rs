//! Gauges whose values are read only when the metrics are requested. Between requests, these gauges
//! cost nothing.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// A gauge that calls a function for its value. If the function returns `None`, the gauge has no
/// sample.
pub(super) struct ScrapeGauge(pub(super) Box<dyn Fn() -> Option<u64> + Send + Sync>);

impl EncodeMetric for ScrapeGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        match (self.0)() {
            Some(value) => encoder.encode_gauge(&value),
            None => Ok(()),
        }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl std::fmt::Debug for ScrapeGauge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScrapeGauge")
    }
}

/// The label names and label values of a sample.
pub(crate) type SampleLabels = Vec<(&'static str, String)>;

/// A gauge with labels, which calls a function for all its samples.
pub(super) struct ScrapeGaugeFamily(
    pub(super) Box<dyn Fn() -> Vec<(SampleLabels, u64)> + Send + Sync>,
);

impl EncodeMetric for ScrapeGaugeFamily {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        for (labels, value) in (self.0)() {
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl std::fmt::Debug for ScrapeGaugeFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScrapeGaugeFamily")
    }
}
