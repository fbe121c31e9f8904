//! Locates a quantity in a sink's output or files, and merges the parts of a sink.

use super::histograms::{
    HistogramError, add_histogram, decode_histogram, encode_histogram, read_log_histogram,
};
use super::sink_output::{NoJson, SinkStdout};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The reason why the text of a quantity is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityLocatorError {
    #[error("invalid divisor; write a number other than 0 after ` / `")]
    Divisor,
    #[error("{0} is not a path within the run's folder; write one relative to {{folder}}")]
    FileOutside(String),
    #[error(
        "invalid quantity; write `/pointer` (a number in the JSON output), `sum /pointer` (or mean, \
         least, most: of parts), `/pointer p99` (of a histogram there) or `FILE TAGS p99 / 1e6` (of \
         an HDR log; or max, min, mean, count)"
    )]
    Form,
}

/// The reason why a quantity has no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error(transparent)]
    Syntax(#[from] QuantityLocatorError),
    #[error(transparent)]
    Output(#[from] NoJson),
    #[error("no {what} at {pointer} of the output")]
    Missing { what: &'static str, pointer: String },
    #[error("{file}: {source}")]
    Log {
        file: String,
        source: HistogramError,
    },
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    #[error("expected a number, found a histogram")]
    NotANumber,
    #[error("expected a histogram, found a number")]
    NotAHistogram,
    #[error("no part reported it")]
    NoParts,
    #[error("several parts reported it; write sum, mean, least or most before it")]
    SeveralParts,
    #[error("the value is too large for a number; use another divisor")]
    NotFinite,
}

/// An expression such as `/pointer`, `sum /pointer` (over parts), `/pointer p99` or `FILE TAG p99 /
/// 1e6`. Statistics of a histogram refer to the merged counts of all parts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantityLocator {
    from: ValueLocation,
    what: ValueStatistic,
    divisor: f64,
}

/// Location of a value.
#[derive(Debug, Clone, PartialEq)]
enum ValueLocation {
    /// A JSON pointer (RFC 6901) into the sink's output. It refers to a number, or to an HDR
    /// histogram (V2 in base64).
    OutputPointer(String),
    /// The path of an HDR interval log in the run's folder, and a tag pattern in which `*` matches
    /// any text.
    Log(String, String),
}

/// The statistic that an expression computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ValueStatistic {
    /// A number, with its aggregation over parts. Without an aggregation, there must be only one
    /// part.
    Number(Option<PartAggregation>),
    /// The value at this quantile of a histogram.
    Quantile(f64),
    Count,
    Mean,
}

/// Aggregation of the numbers of several parts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PartAggregation {
    Sum,
    Mean,
    Min,
    Max,
}

/// The value that one part of a sink measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PartValue {
    /// A number.
    Number(f64),
    /// An HDR histogram (V2, deflated, in base64).
    Histogram(String),
    /// The sink printed `null`, because it could not measure the value.
    NotMeasured,
}

impl QuantityLocator {
    /// Parses an expression.
    ///
    /// # Errors
    /// The syntax is invalid.
    pub(super) fn parse_locator(text: &str) -> Result<QuantityLocator, QuantityLocatorError> {
        let (text, divisor) = match text.rsplit_once(" / ") {
            Some((text, divisor)) => (text, divisor.trim().parse().unwrap_or(0.0)),
            None => (text, 1.0),
        };
        if !f64::is_normal(divisor) {
            return Err(QuantityLocatorError::Divisor);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (from, what) = match words[..] {
            [pointer] if pointer.starts_with('/') => {
                (wrap_output_pointer(pointer), ValueStatistic::Number(None))
            }
            [parts, pointer] if pointer.starts_with('/') => (
                wrap_output_pointer(pointer),
                ValueStatistic::Number(Some(PartAggregation::parse_aggregation(parts)?)),
            ),
            [pointer, of] if pointer.starts_with('/') => (
                wrap_output_pointer(pointer),
                ValueStatistic::parse_statistic(of)?,
            ),
            [file, of] => (
                ValueLocation::Log(check_path_within_folder(file)?, "*".into()),
                ValueStatistic::parse_statistic(of)?,
            ),
            [file, tags, of] => (
                ValueLocation::Log(check_path_within_folder(file)?, tags.into()),
                ValueStatistic::parse_statistic(of)?,
            ),
            _ => return Err(QuantityLocatorError::Form),
        };
        Ok(QuantityLocator {
            from,
            what,
            divisor,
        })
    }

    /// Returns whether the values of several parts of a sink can be merged.
    pub(super) fn is_mergeable(&self) -> bool {
        self.what != ValueStatistic::Number(None)
    }

    /// Finds the value in the sink's output or in a file of the run's folder.
    ///
    /// # Errors
    /// The value is missing or cannot be parsed.
    pub(super) fn find_part_value(
        &self,
        printed: &SinkStdout,
        folder: &Path,
    ) -> Result<PartValue, QuantityError> {
        let histogram = match &self.from {
            ValueLocation::OutputPointer(pointer) => {
                let value = printed.json()?.pointer(pointer);
                let none = |what| QuantityError::Missing {
                    what,
                    pointer: pointer.clone(),
                };
                if let ValueStatistic::Number(_) = self.what {
                    if value.is_some_and(Value::is_null) {
                        return Ok(PartValue::NotMeasured);
                    }
                    let number = value.and_then(Value::as_f64);
                    return number.map(PartValue::Number).ok_or_else(|| none("number"));
                }
                let text = value.and_then(Value::as_str);
                decode_histogram(text.ok_or_else(|| none("histogram"))?)?
            }
            ValueLocation::Log(file, tags) => read_log_histogram(&folder.join(file), tags)
                .map_err(|source| QuantityError::Log {
                    file: file.clone(),
                    source,
                })?,
        };
        Ok(PartValue::Histogram(encode_histogram(&histogram)?))
    }

    /// Returns the merged value of all parts. Returns `None` if a part was not measured, and for a
    /// statistic of no samples. Also returns `None` for a percentile with fewer than ten samples
    /// below it or above it. The minimum and the maximum need only one sample.
    ///
    /// # Errors
    /// The parts cannot be merged, or the value is not finite.
    pub(super) fn merge_if_enough_samples(
        &self,
        parts: &[PartValue],
    ) -> Result<Option<f64>, QuantityError> {
        self.merge_values(parts, |samples, share| {
            share <= 0.0 || share >= 1.0 || stats::has_enough_samples(samples, share)
        })
    }

    /// Returns the merged value of all parts. Returns `None` if a part was not measured, and for a
    /// statistic of no samples.
    ///
    /// # Errors
    /// The parts cannot be merged, or the value is not finite.
    pub(super) fn merge_part_values(
        &self,
        parts: &[PartValue],
    ) -> Result<Option<f64>, QuantityError> {
        self.merge_values(parts, |_, _| true)
    }

    /// Returns the merged value of all parts, except a percentile for which `is_enough` returns
    /// `false`. `is_enough` receives the number of samples, and the percentile as a share.
    fn merge_values(
        &self,
        parts: &[PartValue],
        is_enough: fn(u64, f64) -> bool,
    ) -> Result<Option<f64>, QuantityError> {
        if parts.contains(&PartValue::NotMeasured) {
            return Ok(None);
        }
        let non_empty = |sum: Histogram<u64>| Some(sum).filter(|sum| !sum.is_empty());
        let value = match self.what {
            ValueStatistic::Number(how) => Some(combine_numbers(how, parts)?),
            ValueStatistic::Count => Some(sum_histograms(parts)?.len() as f64),
            ValueStatistic::Mean => non_empty(sum_histograms(parts)?).map(|sum| sum.mean()),
            ValueStatistic::Quantile(share) => non_empty(sum_histograms(parts)?)
                .filter(|sum| is_enough(sum.len(), share))
                .map(|sum| sum.value_at_quantile(share) as f64),
        };
        let Some(value) = value else {
            return Ok(None);
        };
        let value = value / self.divisor;
        // JSON has no infinite numbers. A record with such a number could not be read back.
        match value.is_finite() {
            true => Ok(Some(value)),
            false => Err(QuantityError::NotFinite),
        }
    }
}

fn wrap_output_pointer(pointer: &str) -> ValueLocation {
    ValueLocation::OutputPointer(pointer.to_owned())
}

/// Returns the path of a file if it is within the run's folder.
fn check_path_within_folder(file: &str) -> Result<String, QuantityLocatorError> {
    let inside = Path::new(file)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_)));
    match inside {
        true => Ok(file.to_owned()),
        false => Err(QuantityLocatorError::FileOutside(file.to_owned())),
    }
}

impl PartAggregation {
    fn parse_aggregation(text: &str) -> Result<PartAggregation, QuantityLocatorError> {
        match text {
            "sum" => Ok(PartAggregation::Sum),
            "mean" => Ok(PartAggregation::Mean),
            "least" => Ok(PartAggregation::Min),
            "most" => Ok(PartAggregation::Max),
            _ => Err(QuantityLocatorError::Form),
        }
    }
}

impl ValueStatistic {
    fn parse_statistic(text: &str) -> Result<ValueStatistic, QuantityLocatorError> {
        let share = |percent: f64| (0.0..=100.0).contains(&percent).then_some(percent / 100.0);
        match text {
            "count" => Ok(ValueStatistic::Count),
            "mean" => Ok(ValueStatistic::Mean),
            "max" => Ok(ValueStatistic::Quantile(1.0)),
            "min" => Ok(ValueStatistic::Quantile(0.0)),
            _ => {
                let percent = text.strip_prefix('p').and_then(|p| p.parse().ok());
                let share = percent.and_then(share).ok_or(QuantityLocatorError::Form)?;
                Ok(ValueStatistic::Quantile(share))
            }
        }
    }
}

fn combine_numbers(
    how: Option<PartAggregation>,
    parts: &[PartValue],
) -> Result<f64, QuantityError> {
    let mut all = Vec::new();
    for part in parts {
        match part {
            PartValue::Number(number) => all.push(*number),
            PartValue::Histogram(_) | PartValue::NotMeasured => {
                return Err(QuantityError::NotANumber);
            }
        }
    }
    match (how, all[..].split_first()) {
        (_, None) => Err(QuantityError::NoParts),
        (None | Some(_), Some((one, []))) => Ok(*one),
        (None, _) => Err(QuantityError::SeveralParts),
        (Some(PartAggregation::Sum), _) => Ok(all.iter().sum()),
        (Some(PartAggregation::Mean), _) => Ok(all.iter().sum::<f64>() / all.len() as f64),
        (Some(PartAggregation::Min), _) => Ok(all.iter().copied().fold(f64::INFINITY, f64::min)),
        (Some(PartAggregation::Max), _) => {
            Ok(all.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        }
    }
}

/// Merges the histograms of all parts.
fn sum_histograms(parts: &[PartValue]) -> Result<Histogram<u64>, QuantityError> {
    let mut sum: Option<Histogram<u64>> = None;
    for part in parts {
        let PartValue::Histogram(text) = part else {
            return Err(QuantityError::NotAHistogram);
        };
        add_histogram(&mut sum, decode_histogram(text)?)?;
    }
    sum.ok_or(QuantityError::NoParts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_histogram(values: std::ops::Range<u64>) -> PartValue {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        values.for_each(|value| histogram.record(value).unwrap());
        PartValue::Histogram(encode_histogram(&histogram).unwrap())
    }

    #[test]
    fn numbers_of_parts_are_aggregated_as_requested() {
        let parts = [PartValue::Number(1.0), PartValue::Number(3.0)];
        for (text, value) in [
            ("sum /x", 4.0),
            ("mean /x", 2.0),
            ("least /x", 1.0),
            ("most /x", 3.0),
            ("most /x / 2", 1.5),
        ] {
            let quantity = QuantityLocator::parse_locator(text).unwrap();
            assert_eq!(
                quantity.merge_part_values(&parts).unwrap(),
                Some(value),
                "{text}"
            );
        }
        let alone = QuantityLocator::parse_locator("/x").unwrap();
        assert!(!alone.is_mergeable() && alone.merge_part_values(&parts).is_err());
        assert_eq!(alone.merge_part_values(&parts[..1]).unwrap(), Some(1.0));
    }

    #[test]
    fn percentiles_are_computed_from_merged_counts() {
        let parts = [sample_histogram(1..500), sample_histogram(500..1001)];
        let whole = [sample_histogram(1..1001)];
        for text in [
            "/x p50",
            "/x p99",
            "f.hdr p99.9",
            "f.hdr */due max",
            "/x mean",
            "/x count",
        ] {
            let quantity = QuantityLocator::parse_locator(text).unwrap();
            let values =
                [&parts[..], &whole].map(|parts| quantity.merge_part_values(parts).unwrap());
            assert_eq!(values[0], values[1], "{text}");
        }
        // The 99th percentile of the merged counts is 990. The mean of the parts' 99th percentiles
        // would be 745.
        let value = |text| {
            QuantityLocator::parse_locator(text)
                .unwrap()
                .merge_part_values(&parts)
                .unwrap()
        };
        assert_eq!(value("/x p99"), Some(990.0));
        assert_eq!(value("/x p50 / 1e3"), Some(0.5));
    }

    #[test]
    fn percentiles_without_ten_samples_beyond_them_are_not_measured() {
        let measure = |text, parts: &[PartValue]| {
            let quantity = QuantityLocator::parse_locator(text).unwrap();
            quantity.merge_if_enough_samples(parts).unwrap()
        };
        let whole = [sample_histogram(1..1001)];
        assert_eq!(measure("/x p99", &whole), Some(990.0));
        assert_eq!(measure("/x p99.9", &whole), None);
        assert_eq!(measure("/x max", &whole), Some(1000.0));
        assert_eq!(measure("/x min", &whole), Some(1.0));
        assert_eq!(measure("/x p0 / 2", &whole), Some(0.5));
        // A sink itself prints `null` if it has too few samples.
        let none = [PartValue::NotMeasured];
        assert_eq!(measure("/x", &none), None);
    }

    #[test]
    fn statistics_of_no_samples_are_not_measured() {
        let measure = |text| {
            let quantity = QuantityLocator::parse_locator(text).unwrap();
            quantity
                .merge_part_values(&[sample_histogram(1..1)])
                .unwrap()
        };
        for text in ["/x max", "/x min", "/x mean", "/x p50"] {
            assert_eq!(measure(text), None, "{text}");
        }
        assert_eq!(measure("/x count"), Some(0.0));
    }

    #[test]
    fn a_value_that_json_cannot_hold_is_an_error() {
        let parts = [PartValue::Number(f64::MAX), PartValue::Number(f64::MAX)];
        for text in ["sum /x", "most /x / 1e-9"] {
            let quantity = QuantityLocator::parse_locator(text).unwrap();
            assert!(quantity.merge_if_enough_samples(&parts).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_found_and_errors_name_their_place() {
        let PartValue::Histogram(text) = sample_histogram(1..11) else {
            unreachable!()
        };
        let printed = SinkStdout::new(format!(
            "noise\n{{\"n\": 7, \"none\": null, \"h\": \"{text}\"}}\n"
        ));
        let find = |text: &str| {
            QuantityLocator::parse_locator(text)
                .unwrap()
                .find_part_value(&printed, Path::new("/"))
        };
        let error = |text| find(text).unwrap_err().to_string();
        assert_eq!(find("/n").unwrap(), PartValue::Number(7.0));
        assert_eq!(find("/none").unwrap(), PartValue::NotMeasured);
        assert_eq!(find("/h count").unwrap(), sample_histogram(1..11));
        assert!(error("/m").contains("/m"));
        assert!(error("/n p99").contains("no histogram at /n"));
        assert!(error("no-such.hdr p99").contains("no-such.hdr"));
    }

    #[test]
    fn invalid_expressions_are_refused() {
        for text in [
            "",
            "x",
            "/x / 0",
            "/x / y",
            "/x p101",
            "/x 99",
            "some /x",
            "../x p99",
            "/x p99 p99 /y",
            "a b c d",
        ] {
            assert!(QuantityLocator::parse_locator(text).is_err(), "{text}");
        }
    }
}
