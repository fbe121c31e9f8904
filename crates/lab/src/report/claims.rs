//! Evaluates the expectations of a document.

use super::arms::{QuantitySummary, as_pair};
use super::runs::{RunIndex, has_values, value_texts};
use super::table::format_interval;
use crate::experiment::document::Expectation;
use crate::experiment::{Arm, RunPlan};
use serde::{Deserialize, Serialize};

/// An expectation for one combination of the other variables.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim as a sentence.
    pub that: String,
    /// The quantity.
    pub quantity: String,
    /// Values of the other variables.
    pub cell: Arm,
    /// Number of usable rounds.
    pub n: usize,
    /// Whether the value is a ratio.
    pub ratio: bool,
    /// Median of the rounds' ratios or values.
    pub value: f64,
    /// Its 95 % interval; `None` below six rounds.
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest round.
    pub range: [f64; 2],
    /// For ratios: the geometric mean, and the ratio of means.
    pub geometric_and_of_means: Option<[f64; 2]>,
    /// Lower bound.
    pub at_least: Option<f64>,
    /// Upper bound.
    pub at_most: Option<f64>,
    /// Finding of the source.
    pub found: Option<String>,
    /// Reason why it does not hold, from the document.
    pub because: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is within the bounds.
    Holds,
    /// The whole interval is outside.
    Fails,
    /// Neither, or too few rounds for an interval.
    Undecided,
    /// There are no bounds.
    #[serde(rename = "told")]
    Reported,
}

impl ClaimResult {
    /// Formats the interval, or the range of too few rounds, with the number of rounds.
    pub(super) fn format_certainty(&self) -> String {
        match self.interval {
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

impl Verdict {
    /// Returns the verdict as one word.
    pub(super) fn as_word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::Reported => "reported",
        }
    }
}

/// Evaluates all expectations for all measured combinations.
pub(super) fn evaluate_claims(plan: &RunPlan, runs: &RunIndex<'_>) -> Vec<ClaimResult> {
    let mut claims = Vec::new();
    for expect in &plan.document.expect {
        let expect = expect.get_ref();
        let (of, only) = (value_texts(&expect.of), value_texts(&expect.only));
        for arm in runs
            .arms()
            .filter(|arm| has_values(arm, &of) && has_values(arm, &only))
        {
            claims.extend(evaluate_claim(expect, arm, runs));
        }
    }
    claims
}

/// Returns `None` if nothing was measured.
fn evaluate_claim(expect: &Expectation, arm: &Arm, runs: &RunIndex<'_>) -> Option<ClaimResult> {
    let to = value_texts(&expect.to);
    let quantity = expect.quantity.get_ref();
    let (n, value, interval, range, beside) = if to.is_empty() {
        let found = QuantitySummary::from_values(&runs.values(arm, quantity))?;
        let range = [found.min, found.max];
        (found.n, found.median, found.interval, range, None)
    } else {
        let mut other = arm.clone();
        other.extend(to.clone());
        let (n, ratio) = runs.ratio(arm, &other, quantity)?;
        let beside = Some([ratio.geometric, ratio.of_means]);
        let interval = ratio.interval.map(as_pair);
        (n, ratio.median, interval, ratio.range(), beside)
    };
    let mut cell = arm.clone();
    cell.retain(|name, _| !expect.of.contains_key(name.as_str()));
    Some(ClaimResult {
        that: expect.that.clone(),
        quantity: quantity.clone(),
        cell,
        n,
        ratio: !to.is_empty(),
        value,
        interval,
        range,
        geometric_and_of_means: beside,
        at_least: expect.at_least,
        at_most: expect.at_most,
        found: expect.found.clone(),
        because: expect.because.clone(),
        verdict: decide_verdict(expect, interval),
    })
}

fn decide_verdict(expect: &Expectation, interval: Option<[f64; 2]>) -> Verdict {
    let least = expect.at_least.unwrap_or(f64::NEG_INFINITY);
    let most = expect.at_most.unwrap_or(f64::INFINITY);
    match interval {
        _ if expect.at_least.is_none() && expect.at_most.is_none() => Verdict::Reported,
        Some([low, high]) if low >= least && high <= most => Verdict::Holds,
        Some([low, high]) if high < least || low > most => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}
