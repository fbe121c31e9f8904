//! A gauge that is read when the metrics are requested, so that changing it costs nothing.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// A gauge with the value that its function returns, and without a sample if that is `None`.
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
