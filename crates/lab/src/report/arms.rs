//! Each arm by itself.

use super::runs::Runs;
use crate::experiment::Arm;
use serde::Serialize;
use stats::Interval;
use std::collections::{BTreeMap, BTreeSet};

/// Means of runs that scatter more than this, as a share of their mean, call an arm unstable.
pub(super) const SPREAD_MAX: f64 = 0.1;

/// One arm.
#[derive(Debug, Clone, Serialize)]
pub struct OfArm {
    /// The variables' values.
    pub arm: Arm,
    /// Runs that count.
    pub runs: usize,
    /// By quantity.
    pub values: BTreeMap<String, Sample>,
}

/// A quantity of an arm over its rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Rounds.
    pub n: usize,
    /// Arithmetic.
    pub mean: f64,
    /// 95 % bootstrap interval of the mean.
    pub interval: Option<[f64; 2]>,
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The standard deviation of the runs' values by their mean; none of one run, or around 0.
    pub spread: Option<f64>,
}

impl Sample {
    /// None of nothing.
    pub(super) fn of(values: &[f64], seed: u64) -> Option<Sample> {
        let found = stats::Summary::of(values, seed)?;
        let spread = found.deviation / found.mean.abs();
        Some(Sample {
            n: found.n,
            mean: found.mean,
            interval: found.interval.map(pair),
            median: found.median,
            min: found.min,
            max: found.max,
            spread: (found.n > 1 && spread.is_finite()).then_some(spread),
        })
    }

    /// Whether its runs scatter so much that the arm is called unstable.
    pub fn unstable(&self) -> bool {
        self.spread.is_some_and(|spread| spread > SPREAD_MAX)
    }
}

impl OfArm {
    pub(super) fn of(arm: &Arm, runs: &Runs<'_>, seed: u64) -> OfArm {
        let names: BTreeSet<&String> = runs.of(arm).flat_map(|(_, r)| r.values.keys()).collect();
        let sample = |name: &String| {
            let sample = Sample::of(&runs.values(arm, name), seed)?;
            Some((name.clone(), sample))
        };
        OfArm {
            arm: arm.clone(),
            runs: runs.of(arm).count(),
            values: names.into_iter().filter_map(sample).collect(),
        }
    }
}

pub(super) fn pair(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// An arm in words.
pub(super) fn words(arm: &Arm) -> String {
    let each = arm.iter().map(|(name, value)| format!("{name} {value}"));
    let text = each.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "–".into() } else { text }
}
