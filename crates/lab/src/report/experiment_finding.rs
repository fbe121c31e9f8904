//! The headline of a report, which states the number of claims with each verdict.

use super::arms::{ArmReport, describe_arm};
use super::claims::ClaimResult;
use super::table::format_number;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// The overall result of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExperimentFinding {
    /// The outcome.
    pub outcome: FindingOutcome,
    /// The outcome as a sentence.
    #[serde(rename = "says")]
    pub sentence: String,
    /// One line for each claim with bounds. Each line contains the result, the finding of the
    /// source, and the reason for a difference.
    pub lines: Vec<String>,
}

/// The overall result of the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// Every claim of the source has the verdict `Repeated`, and every claim of our own has the
    /// verdict `AsExpected`.
    Repeated,
    /// At least one claim has the verdict `Contradicted` or `NotAsExpected`.
    Contradicted,
    /// Anything else.
    Mixed,
    /// There are no claims with bounds.
    NoClaim,
}

impl ExperimentFinding {
    /// Counts the verdicts on claims of the source, and then the verdicts on our own claims. If
    /// there are no verdicts, states the medians of the arms instead.
    pub(super) fn new(claims: &[ClaimResult], arms: &[ArmReport]) -> ExperimentFinding {
        let judged = claims
            .iter()
            .filter(|claim| claim.verdict != Verdict::Reported);
        let (source_claims, own_claims): (Vec<&ClaimResult>, Vec<&ClaimResult>) =
            judged.partition(|claim| claim.source.is_some());
        let count = |of: &[&ClaimResult], verdict| {
            of.iter().filter(|claim| claim.verdict == verdict).count()
        };
        let repeated = count(&source_claims, Verdict::Repeated);
        let expected = count(&own_claims, Verdict::AsExpected);
        let wrong = count(&source_claims, Verdict::Contradicted)
            + count(&own_claims, Verdict::NotAsExpected);
        let outcome = match () {
            () if source_claims.is_empty() && own_claims.is_empty() => FindingOutcome::NoClaim,
            () if wrong > 0 => FindingOutcome::Contradicted,
            () if repeated + expected == source_claims.len() + own_claims.len() => {
                FindingOutcome::Repeated
            }
            () => FindingOutcome::Mixed,
        };
        let mut sentences = Vec::new();
        if !source_claims.is_empty() {
            let counts = Verdict::OF_SOURCE.into_iter();
            let counts = counts.map(|verdict| (count(&source_claims, verdict), verdict.as_words()));
            let counts = counts
                .filter(|(n, _)| *n > 0)
                .map(|(n, words)| format!("{n} {words}"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            sentences.push(format!("Claims of the source: {counts}."));
        }
        if !own_claims.is_empty() {
            sentences.push(format!("As expected: {expected} of {}.", own_claims.len()));
        }
        if sentences.is_empty() {
            sentences.push(describe_medians(claims, arms));
        }
        let lines = source_claims.into_iter().chain(own_claims);
        ExperimentFinding {
            outcome,
            sentence: sentences.join(" "),
            lines: lines.map(format_claim).collect(),
        }
    }
}

/// Maximum number of arms in the headline. The table of the arms lists all arms.
const ARMS_SHOWN_MAX: usize = 4;

/// Formats the medians of one quantity in all arms. Uses the first measured quantity that a claim
/// names. If no claim names a measured quantity, uses the first measured quantity.
fn describe_medians(claims: &[ClaimResult], arms: &[ArmReport]) -> String {
    let is_measured = |name: &&String| arms.iter().any(|of| of.values.contains_key(*name));
    let claimed = claims.iter().map(|claim| &claim.quantity);
    let measured = arms.iter().flat_map(|of| of.values.keys());
    let Some(name) = claimed.chain(measured).find(is_measured) else {
        return "No values were measured.".into();
    };
    let median = |of: &ArmReport| {
        let median = format_number(of.values.get(name)?.median);
        Some(match of.arm.is_empty() {
            true => median,
            false => format!("{median} ({})", describe_arm(&of.arm)),
        })
    };
    let mut medians: Vec<String> = arms.iter().filter_map(median).collect();
    let hidden = medians.len().saturating_sub(ARMS_SHOWN_MAX);
    medians.truncate(ARMS_SHOWN_MAX);
    let more = match hidden {
        0 => String::new(),
        1 => ", and 1 more arm".into(),
        n => format!(", and {n} more arms"),
    };
    let medians = medians.join(", ");
    format!("Median of {name}: {medians}{more}. No expectation has bounds.")
}

/// Formats a claim with its result and verdict.
fn format_claim(claim: &ClaimResult) -> String {
    let cell = match claim.cell.is_empty() {
        true => String::new(),
        false => format!(" ({})", describe_arm(&claim.cell)),
    };
    let times = if claim.ratio { " times" } else { "" };
    let value = match claim.n {
        0 => String::new(),
        _ => format!(
            "{}{times} ({}): ",
            format_number(claim.value),
            claim.format_certainty()
        ),
    };
    let verdict = claim.verdict.as_words();
    let mut line = format!("{}{cell}: {value}{verdict}.", claim.that);
    if let Some(found) = &claim.found {
        let range = claim.source.as_deref().unwrap_or("no figure");
        line += &format!(" Source: {found} ({range}).");
    }
    let is_good = matches!(claim.verdict, Verdict::Repeated | Verdict::AsExpected);
    if let (Some(because), false) = (&claim.because, is_good) {
        line += &format!(" Reason: {because}");
    }
    line
}
