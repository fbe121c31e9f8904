//! Expectations of a run, such as `p99 < 50ms`.

use crate::players::population_report as viewers;
use crate::rate::RequestKind;
use crate::result::{LatencyHistogram, RequestStats, RunResult};
use std::fmt;

/// An expectation consists of a quantity, a comparison and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// If set, only requests of this kind are measured.
    kind: Option<RequestKind>,
    quantity: MeasuredQuantity,
    comparison: ComparisonOperator,
    bound: f64,
    text: String,
}

/// The result of an expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectationVerdict {
    /// The expectation holds.
    pub holds: bool,
    /// The measured value with its unit.
    pub found: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum MeasuredQuantity {
    /// Quantile of the latency, in milliseconds.
    Quantile(LatencyKind, f64),
    /// Share of the requests that failed, from 0 to 1.
    ErrorShare,
    Errors,
    Unsent,
    /// Requests that were still in flight when the run ended, or that players cancelled. No other
    /// quantity includes them.
    Abandoned,
    Late,
    Requests,
    /// Requests per second, averaged over the duration of the run, which includes the drain.
    Rate,
    /// Bits per second, averaged like the rate.
    Throughput,
    /// The 99th percentile of the generator's lateness, in milliseconds.
    Lag,
    /// A quantity that is measured for viewers, such as the stall ratio.
    Viewing(viewers::ViewerQuantity),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LatencyKind {
    Due,
    Sent,
    First,
}

impl LatencyKind {
    fn histogram(self, cell: &RequestStats) -> &LatencyHistogram {
        match self {
            LatencyKind::Due => &cell.from_due,
            LatencyKind::Sent => &cell.from_sent,
            LatencyKind::First => &cell.first_byte,
        }
    }

    /// Describes a quantile, and the number of samples. If fewer than ten samples are beyond the
    /// quantile, the value would be random, so the maximum is shown instead.
    fn format_measured_quantile(self, cell: &RequestStats, share: f64, ms: f64) -> String {
        let times = self.histogram(cell);
        let samples = times.count();
        match stats::has_enough_samples(samples, share) {
            true => format!("{ms:.3} ms of {samples} samples"),
            false => format!(
                "{samples} samples, of which fewer than ten are beyond this percentile; maximum {:.3} ms",
                times.max_ms()
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ComparisonOperator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

/// The reason why an expectation cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpectationError {
    /// The text does not consist of a quantity, a comparison and a bound.
    #[error("invalid expectation; {GRAMMAR}")]
    Syntax,
    /// The percentile is out of range.
    #[error("invalid percentile; use p0 to p100")]
    Percentile,
    /// The unit of the bound does not fit the quantity.
    #[error("invalid unit; use one of: {0}")]
    Unit(String),
}

const GRAMMAR: &str = "use a quantity, <, <=, >, >= or =, and a bound: 'p99 < 50ms', \
     'sent.p50 < 5ms', 'first.p90 < 20ms', 'segment.p99.9 < 1s', 'max < 2s', 'errors = 0', \
     'errors < 1%', 'unsent = 0', 'abandoned = 0', 'late = 0', 'requests >= 1000', \
     'rate >= 95/s', 'throughput > 100Mbps', 'lag < 2ms'";

impl Expectation {
    /// Parses an expectation.
    ///
    /// # Errors
    /// The text is not a valid expectation.
    pub fn parse_expectation(text: &str) -> Result<Expectation, ExpectationError> {
        let at = text.find(['<', '>', '=']).ok_or(ExpectationError::Syntax)?;
        let (left, rest) = text.split_at(at);
        let (comparison, bound) = if let Some(rest) = rest.strip_prefix("<=") {
            (ComparisonOperator::AtMost, rest)
        } else if let Some(rest) = rest.strip_prefix(">=") {
            (ComparisonOperator::AtLeast, rest)
        } else if let Some(rest) = rest.strip_prefix('<') {
            (ComparisonOperator::Less, rest)
        } else if let Some(rest) = rest.strip_prefix('>') {
            (ComparisonOperator::More, rest)
        } else {
            (ComparisonOperator::Equal, rest.trim_start_matches('='))
        };
        let mut left = left.trim();
        let mut kind = None;
        for of in RequestKind::ALL {
            if let Some(rest) = left
                .strip_prefix(of.name())
                .and_then(|rest| rest.strip_prefix('.'))
            {
                (kind, left) = (Some(of), rest);
            }
        }
        let bound = bound.trim();
        let quantity = parse_quantity(left, bound)?;
        Ok(Expectation {
            kind,
            quantity,
            comparison,
            bound: parse_bound(quantity, bound)?,
            text: text.trim().to_owned(),
        })
    }

    /// Evaluates the expectation for a run. If the run has no data for the quantity, the
    /// expectation does not hold.
    pub fn evaluate(&self, run: &RunResult) -> ExpectationVerdict {
        let cell = match self.kind {
            None => run.merged_stats(),
            Some(kind) => run.stats_by_kind().remove(&kind).unwrap_or_default(),
        };
        let Some(found) = self.measured_value(run, &cell) else {
            return ExpectationVerdict {
                holds: false,
                found: "nothing".into(),
            };
        };
        let holds = match self.comparison {
            ComparisonOperator::Less => found < self.bound,
            ComparisonOperator::AtMost => found <= self.bound,
            ComparisonOperator::More => found > self.bound,
            ComparisonOperator::AtLeast => found >= self.bound,
            ComparisonOperator::Equal => found == self.bound,
        };
        let found = match self.quantity {
            MeasuredQuantity::Quantile(latency, share) if share < 1.0 => {
                latency.format_measured_quantile(&cell, share, found)
            }
            MeasuredQuantity::Quantile(..) | MeasuredQuantity::Lag => format!("{found:.3} ms"),
            MeasuredQuantity::ErrorShare => format!("{:.3} %", found * 100.0),
            MeasuredQuantity::Rate => format!("{found:.1}/s"),
            MeasuredQuantity::Throughput
            | MeasuredQuantity::Viewing(viewers::ViewerQuantity::Bitrate(_)) => {
                format!("{:.1} Mb/s", found / 1e6)
            }
            MeasuredQuantity::Viewing(viewers::ViewerQuantity::StallRatio) => {
                format!("{:.3} %", found * 100.0)
            }
            MeasuredQuantity::Viewing(
                viewers::ViewerQuantity::Startup(_) | viewers::ViewerQuantity::Late(_),
            ) => {
                format!("{found:.3} ms")
            }
            _ => format!("{found}"),
        };
        ExpectationVerdict { holds, found }
    }

    fn measured_value(&self, run: &RunResult, cell: &RequestStats) -> Option<f64> {
        let wall = run.wall_s.max(1e-9);
        Some(match self.quantity {
            MeasuredQuantity::Quantile(latency, q) => {
                let times = latency.histogram(cell);
                match (times.count(), q) {
                    (0, _) => return None,
                    (_, 1.0) => times.max_ms(),
                    _ => times.quantile_ms(q),
                }
            }
            MeasuredQuantity::ErrorShare if cell.requests == 0 => return None,
            MeasuredQuantity::ErrorShare => cell.error_count() as f64 / cell.requests as f64,
            MeasuredQuantity::Errors => cell.error_count() as f64,
            MeasuredQuantity::Unsent => run.unsent as f64,
            MeasuredQuantity::Abandoned => run.abandoned as f64,
            MeasuredQuantity::Late => cell.late as f64,
            MeasuredQuantity::Requests => cell.requests as f64,
            MeasuredQuantity::Rate => cell.requests as f64 / wall,
            MeasuredQuantity::Throughput => cell.bytes as f64 * 8.0 / wall,
            MeasuredQuantity::Lag => run.lag.quantile_ms(0.99),
            MeasuredQuantity::Viewing(quantity) => {
                quantity.measured_value(run.viewing.as_deref()?)?
            }
        })
    }
}

fn parse_quantity(text: &str, bound: &str) -> Result<MeasuredQuantity, ExpectationError> {
    if let Some(found) = viewers::ViewerQuantity::parse_viewer_quantity(text) {
        return Ok(MeasuredQuantity::Viewing(found));
    }
    let (latency, rest) = match text.split_once('.') {
        Some(("due", rest)) => (LatencyKind::Due, rest),
        Some(("sent", rest)) => (LatencyKind::Sent, rest),
        Some(("first", rest)) => (LatencyKind::First, rest),
        _ => (LatencyKind::Due, text),
    };
    if rest == "max" {
        return Ok(MeasuredQuantity::Quantile(latency, 1.0));
    }
    if let Some(percent) = rest
        .strip_prefix('p')
        .and_then(|digits| digits.parse::<f64>().ok())
    {
        return match (0.0..=100.0).contains(&percent) {
            true => Ok(MeasuredQuantity::Quantile(latency, percent / 100.0)),
            false => Err(ExpectationError::Percentile),
        };
    }
    Ok(match text {
        "errors" if bound.ends_with('%') => MeasuredQuantity::ErrorShare,
        "errors" => MeasuredQuantity::Errors,
        "unsent" => MeasuredQuantity::Unsent,
        "abandoned" => MeasuredQuantity::Abandoned,
        "late" => MeasuredQuantity::Late,
        "requests" => MeasuredQuantity::Requests,
        "rate" => MeasuredQuantity::Rate,
        "throughput" => MeasuredQuantity::Throughput,
        "lag" => MeasuredQuantity::Lag,
        _ => return Err(ExpectationError::Syntax),
    })
}

fn parse_bound(quantity: MeasuredQuantity, text: &str) -> Result<f64, ExpectationError> {
    let units: &[(&str, f64)] = match quantity {
        MeasuredQuantity::Quantile(..)
        | MeasuredQuantity::Lag
        | MeasuredQuantity::Viewing(
            viewers::ViewerQuantity::Startup(_) | viewers::ViewerQuantity::Late(_),
        ) => &[("us", 1e-3), ("ms", 1.0), ("s", 1000.0), ("min", 6e4)],
        MeasuredQuantity::ErrorShare
        | MeasuredQuantity::Viewing(viewers::ViewerQuantity::StallRatio) => &[("%", 0.01)],
        MeasuredQuantity::Rate => &[("", 1.0), ("/s", 1.0), ("/min", 1.0 / 60.0)],
        MeasuredQuantity::Throughput
        | MeasuredQuantity::Viewing(viewers::ViewerQuantity::Bitrate(_)) => {
            &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)]
        }
        _ => &[("", 1.0)],
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let names = || {
        units
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let scale = units.iter().find(|(name, _)| *name == unit.trim());
    let (_, scale) = scale.ok_or_else(|| ExpectationError::Unit(names()))?;
    let number: f64 = number.parse().map_err(|_| ExpectationError::Syntax)?;
    Ok(number * scale)
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::StepResult;
    use std::time::Duration;

    fn test_run() -> RunResult {
        let mut cell = RequestStats {
            requests: 100,
            bytes: 1_000_000,
            ..RequestStats::default()
        };
        for n in 1..=100 {
            cell.from_due.record(Duration::from_millis(n));
            cell.from_sent.record(Duration::from_millis(n / 2));
        }
        cell.statuses.extend([(200, 97), (404, 2)]);
        cell.faults.insert(crate::client::FailureKind::Reset, 1);
        let kinds = [(RequestKind::Segment, cell)].into();
        RunResult {
            wall_s: 10.0,
            abandoned: 2,
            steps: vec![StepResult {
                kinds,
                ..StepResult::default()
            }],
            ..RunResult::default()
        }
    }

    #[test]
    fn expectations_are_evaluated() {
        for (text, holds) in [
            ("p99 < 50ms", false),
            ("p50 <= 50.1ms", true),
            ("p99 < 1s", true),
            ("sent.p99 < 50ms", true),
            ("due.p99.9 > 99ms", true),
            ("max < 99ms", false),
            ("segment.p50 < 60ms", true),
            ("manifest.p50 < 60ms", false),
            ("errors = 3", true),
            ("errors == 0", false),
            ("errors < 5%", true),
            ("errors < 1%", false),
            ("unsent = 0", true),
            ("abandoned = 0", false),
            ("abandoned < 3", true),
            ("late=0", true),
            ("requests >= 100", true),
            ("rate >= 10/s", true),
            ("rate > 601/min", false),
            ("throughput > 0.7Mbps", true),
            ("first.p50 < 1s", false),
            ("lag < 2ms", true),
        ] {
            let verdict = Expectation::parse_expectation(text)
                .unwrap()
                .evaluate(&test_run());
            assert_eq!(verdict.holds, holds, "{text}: {verdict:?}");
        }
    }

    #[test]
    fn invalid_expectations_are_refused() {
        for text in [
            "",
            "p99",
            "p99 < 5",
            "p101 < 5ms",
            "x < 5ms",
            "p99 < ms",
            "errors < 5ms",
            "< 5",
        ] {
            assert!(Expectation::parse_expectation(text).is_err(), "{text}");
        }
    }
}
