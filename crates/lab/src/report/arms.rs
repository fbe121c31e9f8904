//! Statistics of each arm.

use super::record_index::RecordIndex;
use super::round_to_digits::round_to_digits;
use super::table::format_interval_or_range;
use crate::experiment::Arm;
use serde::{Deserialize, Serialize};
use stats::ConfidenceInterval;
use std::collections::{BTreeMap, BTreeSet};

/// Relative standard deviation above which an arm is called unstable.
pub(super) const SPREAD_MAX: f64 = 0.1;

/// Results of an arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArmReport {
    /// Values of the variables that define the arm.
    pub arm: Arm,
    /// Number of runs that were not discarded.
    pub runs: usize,
    /// Statistics of each quantity, by its name.
    pub values: BTreeMap<String, QuantitySummary>,
}

/// Summary statistics of one quantity over all rounds of an arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuantitySummary {
    /// Number of rounds.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// 95 % confidence interval of the median. `None` if there are fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Standard deviation divided by the absolute value of the mean. `None` for a single run or a
    /// mean of 0.
    pub spread: Option<f64>,
}

impl QuantitySummary {
    /// Computes the statistics. Returns `None` if there are no values.
    pub(super) fn from_values(values: &[f64]) -> Option<QuantitySummary> {
        let found = stats::SampleSummary::from_values(values)?;
        let spread = found.deviation / found.mean.abs();
        Some(QuantitySummary {
            n: found.n,
            mean: found.mean,
            interval: found.interval.map(interval_as_pair),
            median: found.median,
            min: found.min,
            max: found.max,
            spread: (found.n > 1 && spread.is_finite()).then_some(spread),
        })
    }

    /// Formats the confidence interval of the median, or the range of the values if there are too
    /// few rounds for an interval.
    pub(super) fn format_interval(&self) -> String {
        format_interval_or_range(self.interval, self.n, [self.min, self.max])
    }

    /// Returns the median and the two ends of the error bar. The error bar spans the confidence
    /// interval, or the range of the values if there are too few rounds for an interval.
    pub(super) fn as_error_bar(&self) -> [f64; 3] {
        let [low, high] = self.interval.unwrap_or([self.min, self.max]);
        [self.median, low, high].map(round_to_digits)
    }

    /// Returns whether the quantity varies so much between rounds that the arm is called unstable.
    pub fn is_unstable(&self) -> bool {
        self.spread.is_some_and(|spread| spread > SPREAD_MAX)
    }
}

impl ArmReport {
    pub(super) fn from_runs(arm: &Arm, runs: &RecordIndex<'_>) -> ArmReport {
        let names: BTreeSet<&String> = runs
            .records_of_arm(arm)
            .flat_map(|(_, r)| r.values.keys())
            .collect();
        let sample = |name: &String| {
            let sample = QuantitySummary::from_values(&runs.values(arm, name))?;
            Some((name.clone(), sample))
        };
        ArmReport {
            arm: arm.clone(),
            runs: runs.records_of_arm(arm).count(),
            values: names.into_iter().filter_map(sample).collect(),
        }
    }
}

pub(super) fn interval_as_pair(interval: ConfidenceInterval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// Formats the variables of an arm with their values, such as `loss 1%, users 10`.
pub(super) fn describe_arm(arm: &Arm) -> String {
    let each = arm.iter().map(|(name, value)| format!("{name} {value}"));
    let text = each.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "–".into() } else { text }
}
