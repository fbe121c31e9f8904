//! The percentiles in every report, with the number of samples.

use super::number_format::format_ms;
use crate::result::LatencyHistogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// The quantiles in every report. Each quantile has a name, and the share of samples (0 to 1) at or
/// below the quantile.
pub(crate) const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// Quantiles of a distribution, in milliseconds. A percentile is `None` if fewer than ten samples
/// are beyond it. The minimum and the maximum are `None` if there are no samples.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KeyQuantiles {
    samples: u64,
    #[serde(flatten)]
    values: BTreeMap<&'static str, Option<f64>>,
}

impl KeyQuantiles {
    pub(crate) fn from_histogram(times: &LatencyHistogram) -> KeyQuantiles {
        let samples = times.count();
        let value = |&(name, share): &(&'static str, f64)| {
            let value = match name {
                "min" => (samples > 0).then(|| times.min_ms()),
                "max" => (samples > 0).then(|| times.max_ms()),
                _ => quantile_if_supported(times, share),
            };
            (name, value)
        };
        KeyQuantiles {
            samples,
            values: QUANTILES.iter().map(value).collect(),
        }
    }

    /// Returns the number of samples.
    pub(crate) fn sample_count(&self) -> u64 {
        self.samples
    }

    /// Formats the quantile with this name in [`QUANTILES`]. Returns a dash if the quantile has no
    /// value.
    pub(crate) fn format_quantile(&self, name: &str) -> String {
        let value = self.values.get(name).copied().flatten();
        value.map_or("–".into(), format_ms)
    }

    /// Returns the highest percentile that has enough samples. The result contains the share as in
    /// [`QUANTILES`], and the value in milliseconds.
    pub(crate) fn highest_percentile(&self) -> Option<(f64, f64)> {
        let percentiles = QUANTILES
            .iter()
            .rev()
            .filter(|(name, _)| name.starts_with('p'));
        percentiles
            .filter_map(|(name, share)| Some((*share, self.values.get(name).copied()??)))
            .next()
    }
}

/// Returns a quantile in milliseconds, or none if fewer than ten samples are beyond the quantile.
pub(crate) fn quantile_if_supported(times: &LatencyHistogram, share: f64) -> Option<f64> {
    stats::has_enough_samples(times.count(), share).then(|| times.quantile_ms(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn no_percentile_is_printed_with_fewer_than_ten_samples_beyond_it() {
        let mut times = LatencyHistogram::default();
        (1..=150).for_each(|n| times.record(Duration::from_millis(n)));
        let figures = KeyQuantiles::from_histogram(&times);
        assert_eq!(figures.sample_count(), 150);
        assert!(
            figures
                .highest_percentile()
                .is_some_and(|(share, _)| share == 0.9)
        );
        for name in ["p95", "p99", "p99.9"] {
            assert_eq!(figures.format_quantile(name), "–", "{name}");
        }
        for name in ["min", "p50", "p90", "max"] {
            assert_ne!(figures.format_quantile(name), "–", "{name}");
        }
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(json["samples"], 150);
        assert!(json["p99"].is_null() && json["p50"].is_f64());
        let none = KeyQuantiles::from_histogram(&LatencyHistogram::default());
        assert_eq!(
            (
                none.format_quantile("max").as_str(),
                none.highest_percentile()
            ),
            ("–", None)
        );
    }
}
