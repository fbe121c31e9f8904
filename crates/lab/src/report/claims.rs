//! Evaluates the expectations of a document.

use super::arms::{QuantitySummary, interval_as_pair};
use super::record_index::{RecordIndex, arm_from_values, arm_has_values};
use super::table::format_interval;
use super::verdict::{ClaimBounds, Verdict};
use crate::experiment::document::Expectation;
use crate::experiment::{Arm, RunPlan};
use serde::{Deserialize, Serialize};
use stats::PairedRatio;

/// The result of an expectation for one cell. A cell is a combination of values of the variables
/// that the key `of` of the expectation does not contain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim as a sentence.
    pub that: String,
    /// The quantity.
    pub quantity: String,
    /// Values of the variables that `of` does not contain.
    pub cell: Arm,
    /// Number of evaluated rounds.
    pub n: usize,
    /// Number of failed attempts of the claim's arms. They were discarded, so the value
    /// does not include them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: usize,
    /// Whether `value` is a ratio of two arms.
    pub ratio: bool,
    /// Median of the ratios or values of all rounds. 0 if there are no rounds.
    #[serde(with = "super::json_number")]
    pub value: f64,
    /// 95 % confidence interval of the median. `None` if there are fewer than six rounds.
    #[serde(with = "super::json_number", default)]
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio or value of all rounds.
    #[serde(with = "super::json_number")]
    pub range: [f64; 2],
    /// Geometric mean of the ratios, and ratio of the means. `None` if the values are not ratios,
    /// or if the ratios have no geometric mean.
    #[serde(with = "super::json_number", default)]
    pub geometric_and_of_means: Option<[f64; 2]>,
    /// Lower bound.
    pub at_least: Option<f64>,
    /// Upper bound.
    pub at_most: Option<f64>,
    /// Finding of the source document in words.
    pub found: Option<String>,
    /// Reason for the verdict, from the experiment document or from the evaluation.
    pub because: Option<String>,
    /// Range or direction that the source document reports, as text.
    pub source: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Returns whether a number is 0. Serde then leaves the field out of the JSON.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ClaimResult {
    /// Formats the number of rounds, and the confidence interval or the range. The range is used if
    /// there are too few rounds for an interval. Also states the number of failed attempts.
    pub(super) fn format_certainty(&self) -> String {
        let rounds = self.format_rounds();
        match self.failed_attempts {
            0 => rounds,
            1 => format!("{rounds}; one failed attempt was discarded"),
            n => format!("{rounds}; {n} failed attempts were discarded"),
        }
    }

    fn format_rounds(&self) -> String {
        match self.interval {
            _ if self.n == 0 => "no round".into(),
            Some(_) => format!(
                "95 % interval {} of {} rounds",
                format_interval(self.interval),
                self.n
            ),
            None => format!(
                "range {} of {} rounds; an interval needs six",
                format_interval(Some(self.range)),
                self.n
            ),
        }
    }
}

/// Evaluates each expectation for all values of the variables that its key `of` does not contain.
/// An expectation with bounds has a result even if no run measured its quantity.
pub(super) fn evaluate_claims(plan: &RunPlan, runs: &RecordIndex<'_>) -> Vec<ClaimResult> {
    let expect = plan.document.expect.iter();
    expect
        .flat_map(|expect| evaluate_expectation(expect.get_ref(), runs))
        .collect()
}

/// Evaluates one expectation for all values of the variables that its key `of` does not contain.
pub(super) fn evaluate_expectation(
    expect: &Expectation,
    runs: &RecordIndex<'_>,
) -> Vec<ClaimResult> {
    let mut claims = Vec::new();
    let committed = runs.keep_runs_with_claim(&expect.fingerprint());
    let (of, only) = (arm_from_values(&expect.of), arm_from_values(&expect.only));
    let arms = runs.arms();
    let arms: Vec<&Arm> = arms
        .filter(|arm| arm_has_values(arm, &of) && arm_has_values(arm, &only))
        .collect();
    let is_judged = ClaimBounds::from_expectation(expect).is_some();
    for arm in &arms {
        let missing = || is_judged.then(|| unmeasured_claim(expect, arm, runs));
        let claim = evaluate_claim(expect, arm, &committed).or_else(missing);
        claims.extend(claim.map(|claim| ClaimResult {
            failed_attempts: count_failed_attempts(expect, arm, &committed),
            ..claim
        }));
    }
    if arms.is_empty() && is_judged {
        claims.push(unmeasured_claim(expect, &only, runs));
    }
    claims
}

/// Counts the failed attempts of an arm, and of the arm with which it is compared.
fn count_failed_attempts(expect: &Expectation, arm: &Arm, runs: &RecordIndex<'_>) -> usize {
    let to = arm_from_values(&expect.to);
    if to.is_empty() {
        return runs.failed_attempts(arm);
    }
    let mut other = arm.clone();
    other.extend(to);
    runs.failed_attempts(arm) + runs.failed_attempts(&other)
}

/// Returns the result of a claim that no usable run measured.
fn unmeasured_claim(expect: &Expectation, arm: &Arm, runs: &RecordIndex<'_>) -> ClaimResult {
    let has_runs = runs.records_of_arm(arm).next().is_some();
    let because = match has_runs {
        true => "the runs do not contain this claim with these bounds, or not its quantity",
        false => "no run of this experiment measured it",
    };
    ClaimResult {
        because: Some(because.into()),
        ..unevaluated_claim(expect, arm)
    }
}

/// Returns the result of a claim that is not evaluated yet.
fn unevaluated_claim(expect: &Expectation, arm: &Arm) -> ClaimResult {
    let mut cell = arm.clone();
    cell.retain(|name, _| !expect.of.contains_key(name.as_str()));
    ClaimResult {
        that: expect.that.clone(),
        quantity: expect.quantity.get_ref().clone(),
        cell,
        n: 0,
        failed_attempts: 0,
        ratio: !expect.to.is_empty(),
        value: 0.0,
        interval: None,
        range: [0.0; 2],
        geometric_and_of_means: None,
        at_least: expect.at_least,
        at_most: expect.at_most,
        found: expect.found.clone(),
        because: expect.because.clone(),
        source: expect.source.map(|source| source.to_string()),
        verdict: Verdict::NotMeasured,
    }
}

/// Returns an undecided result that states why the measured values have no ratio. Returns `None` if
/// there are no values, or if the claim has no bounds.
fn explain_missing_ratio(
    expect: &Expectation,
    arm: &Arm,
    a: &[f64],
    b: &[f64],
) -> Option<ClaimResult> {
    ClaimBounds::from_expectation(expect)?;
    let rounds = a.len();
    let count = |of: fn(f64, f64) -> bool| a.iter().zip(b).filter(|(a, b)| of(**a, **b)).count();
    let zero = count(|a, b| a == 0.0 && b == 0.0);
    let because = match zero {
        _ if rounds == 0 => return None,
        0 => {
            let invalid = count(|a, b| !(a >= 0.0 && b >= 0.0 && (a + b).is_finite()));
            format!("a value is negative or not finite in {invalid} of {rounds} rounds")
        }
        zero => format!("both values are zero in {zero} of {rounds} rounds"),
    };
    Some(ClaimResult {
        because: Some(because),
        verdict: Verdict::Undecided,
        ..unevaluated_claim(expect, arm)
    })
}

/// Evaluates an expectation for one arm. Returns `None` if nothing was measured.
fn evaluate_claim(expect: &Expectation, arm: &Arm, runs: &RecordIndex<'_>) -> Option<ClaimResult> {
    let to = arm_from_values(&expect.to);
    let quantity = expect.quantity.get_ref();
    let (n, value, interval, range, beside) = if to.is_empty() {
        let found = QuantitySummary::from_values(&runs.values(arm, quantity))?;
        let range = [found.min, found.max];
        (found.n, found.median, found.interval, range, None)
    } else {
        let mut other = arm.clone();
        other.extend(to.clone());
        let (a, b) = runs.paired_values(arm, &other, quantity)?;
        let Some(ratio) = PairedRatio::from_pairs(&a, &b) else {
            return explain_missing_ratio(expect, arm, &a, &b);
        };
        let (n, of_means) = (a.len(), ratio.of_means);
        let beside = ratio.geometric.map(|geometric| [geometric, of_means]);
        let interval = ratio.interval.map(interval_as_pair);
        (n, ratio.median, interval, ratio.range(), beside)
    };
    let bounds = ClaimBounds::from_expectation(expect);
    Some(ClaimResult {
        n,
        value,
        interval,
        range,
        geometric_and_of_means: beside,
        verdict: bounds.map_or(Verdict::Reported, |bounds| bounds.judge_interval(interval)),
        ..unevaluated_claim(expect, arm)
    })
}
