//! Summary of one sample.

use crate::{ConfidenceInterval, median_interval};

/// Location and scatter of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleSummary {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// 95 % confidence interval of the median; `None` for fewer than six values.
    pub interval: Option<ConfidenceInterval>,
    /// Sample standard deviation, with the divisor n − 1.
    pub deviation: f64,
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl SampleSummary {
    /// Summarizes a sample. Returns `None` if the sample is empty or a value is not finite.
    pub fn from_values(values: &[f64]) -> Option<SampleSummary> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        Some(SampleSummary {
            n: values.len(),
            mean: mean(values),
            interval: median_interval(values),
            deviation: standard_deviation(values),
            median: median(values),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Returns the arithmetic mean, or NaN if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the median, which is the middle value or the mean of the two middle values. Returns NaN
/// if there are no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns a quantile with linear interpolation (Hyndman and Fan 1996, definition 7). Returns NaN
/// if there are no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = last as f64 * share.clamp(0.0, 1.0);
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(place.floor()), at(place.ceil()));
    // Both neighbors may be the same infinity, and the difference of equal infinities is NaN.
    match low == high {
        true => low,
        false => low + (high - low) * place.fract(),
    }
}

fn standard_deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    match values.len() {
        1 => 0.0,
        n => (squares / (n - 1) as f64).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        let summary =
            SampleSummary::from_values(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.median), (8, 5.0, 4.5));
        assert!((summary.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.min, summary.max), (2.0, 9.0));
        assert_eq!(SampleSummary::from_values(&[]), None);
        assert_eq!(SampleSummary::from_values(&[1.0, f64::NAN]), None);
        assert_eq!(SampleSummary::from_values(&[1.0]).unwrap().deviation, 0.0);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [3.0, 1.0, 2.0, 4.0];
        for (share, value) in [(0.0, 1.0), (0.5, 2.5), (1.0, 4.0), (0.25, 1.75), (0.9, 3.7)] {
            assert!((quantile(&values, share) - value).abs() < 1e-12, "{share}");
        }
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[f64::INFINITY; 3]), f64::INFINITY);
    }
}
