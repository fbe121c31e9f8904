//! Gauges that are read when the metrics are requested, so that changing them costs nothing.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// A gauge whose value its function returns; if the function returns `None`, there is no sample.
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

/// Label names and values of a sample.
pub(crate) type SampleLabels = Vec<(&'static str, String)>;

/// A gauge per combination of label values, with the samples that its function returns.
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
