//! What was expected, and what came.

use super::arms::{Sample, pair};
use super::runs::{Runs, has, texts};
use crate::experiment::document::Expect;
use crate::experiment::{Arm, Plan};
use serde::Serialize;

/// An expectation in one cell: where all other variables have these values.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// In words.
    pub that: String,
    /// What of.
    pub quantity: String,
    /// The other variables' values.
    pub cell: Arm,
    /// Rounds that could be used.
    pub n: usize,
    /// Whether it is a ratio.
    pub ratio: bool,
    /// The ratio's geometric mean, or the mean.
    pub value: f64,
    /// Its 95 % bootstrap interval over rounds.
    pub interval: Option<[f64; 2]>,
    /// Of ratios: the middle one, and the ratio of means.
    pub median_and_of_means: Option<[f64; 2]>,
    /// The bounds of what is expected.
    pub at_least: Option<f64>,
    /// See `at_least`.
    pub at_most: Option<f64>,
    /// What the source found of it.
    pub found: Option<String>,
    /// Why it does not hold, as the document says.
    pub because: Option<String>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of the interval is within the bounds.
    Holds,
    /// All of it is outside.
    Fails,
    /// Neither, or too few rounds for an interval.
    Undecided,
    /// It has no bounds: nothing is claimed.
    Told,
}

impl Verdict {
    /// In a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::Told => "told",
        }
    }
}

/// All expectations in all cells that have been measured.
pub(super) fn claims(plan: &Plan, runs: &Runs<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for expect in &plan.document.expect {
        let expect = expect.get_ref();
        let (of, only) = (texts(&expect.of), texts(&expect.only));
        for arm in runs.arms().filter(|arm| has(arm, &of) && has(arm, &only)) {
            claims.extend(claim(expect, arm, runs, plan.document.seed));
        }
    }
    claims
}

/// None where nothing was measured of it.
fn claim(expect: &Expect, arm: &Arm, runs: &Runs<'_>, seed: u64) -> Option<Claim> {
    let to = texts(&expect.to);
    let quantity = expect.quantity.get_ref();
    let (n, value, interval, beside) = if to.is_empty() {
        let found = Sample::of(&runs.values(arm, quantity), seed)?;
        (found.n, found.mean, found.interval, None)
    } else {
        let mut other = arm.clone();
        other.extend(to.clone());
        let (n, ratio) = runs.ratio(arm, &other, quantity)?;
        let beside = Some([ratio.median, ratio.of_means]);
        (n, ratio.geometric, ratio.interval.map(pair), beside)
    };
    let mut cell = arm.clone();
    cell.retain(|name, _| !expect.of.contains_key(name.as_str()));
    Some(Claim {
        that: expect.that.clone(),
        quantity: quantity.clone(),
        cell,
        n,
        ratio: !to.is_empty(),
        value,
        interval,
        median_and_of_means: beside,
        at_least: expect.at_least,
        at_most: expect.at_most,
        found: expect.found.clone(),
        because: expect.because.clone(),
        verdict: verdict(expect, interval),
    })
}

fn verdict(expect: &Expect, interval: Option<[f64; 2]>) -> Verdict {
    let least = expect.at_least.unwrap_or(f64::NEG_INFINITY);
    let most = expect.at_most.unwrap_or(f64::INFINITY);
    match interval {
        _ if expect.at_least.is_none() && expect.at_most.is_none() => Verdict::Told,
        Some([low, high]) if low >= least && high <= most => Verdict::Holds,
        Some([low, high]) if high < least || low > most => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}
