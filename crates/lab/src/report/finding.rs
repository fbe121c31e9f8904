//! The verdict at the head of a report: whether the source's finding was reproduced.

use super::arms::describe_arm;
use super::claims::{ClaimResult, Verdict};
use super::table::format_number;
use serde::{Deserialize, Serialize};

/// The overall result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceFinding {
    /// The outcome.
    pub outcome: FindingOutcome,
    /// The outcome as a sentence.
    #[serde(rename = "says")]
    pub sentence: String,
    /// One line for each decisive claim: result, the source's finding, and the reason for a
    /// difference.
    pub lines: Vec<String>,
}

/// Whether a finding was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// All of its claims hold.
    Reproduced,
    /// Some claims hold, some fail.
    Partly,
    /// No claim holds, and at least one fails.
    NotReproduced,
    /// Too few rounds, or too much scatter.
    Undecided,
    /// There are no claims.
    NoClaim,
}

impl SourceFinding {
    /// Evaluates the claims that state a finding of the source; without any, all claims with
    /// bounds.
    pub(super) fn from_claims(claims: &[ClaimResult]) -> SourceFinding {
        let bounded = |claim: &&ClaimResult| claim.verdict != Verdict::Reported;
        let of_source = |claim: &&ClaimResult| claim.found.is_some();
        let mut rests: Vec<&ClaimResult> =
            claims.iter().filter(bounded).filter(of_source).collect();
        let from_source = !rests.is_empty();
        if !from_source {
            rests = claims.iter().filter(bounded).collect();
        }
        let count = |verdict| {
            rests
                .iter()
                .filter(|claim| claim.verdict == verdict)
                .count()
        };
        let (all, hold, fail) = (rests.len(), count(Verdict::Holds), count(Verdict::Fails));
        let outcome = match () {
            () if all == 0 => FindingOutcome::NoClaim,
            () if hold == all => FindingOutcome::Reproduced,
            () if hold > 0 && fail > 0 => FindingOutcome::Partly,
            () if fail > 0 => FindingOutcome::NotReproduced,
            () => FindingOutcome::Undecided,
        };
        let what = if from_source {
            "findings of the source"
        } else {
            "expectations"
        };
        let left = all - hold - fail;
        let counts = format!("of the {what}, {hold} held, {fail} failed, {left} undecided");
        let sentence = match outcome {
            FindingOutcome::Reproduced => format!("Reproduced: all {all} {what} hold."),
            FindingOutcome::Partly => format!("Partly reproduced: {counts}."),
            FindingOutcome::NotReproduced => format!("Not reproduced: {counts}."),
            FindingOutcome::Undecided => format!("Undecided: {counts}; run more rounds."),
            FindingOutcome::NoClaim => "No expectation has bounds.".into(),
        };
        SourceFinding {
            outcome,
            sentence,
            lines: rests.into_iter().map(format_claim).collect(),
        }
    }
}

/// Formats a claim as a sentence.
fn format_claim(claim: &ClaimResult) -> String {
    let cell = match claim.cell.is_empty() {
        true => String::new(),
        false => format!(" ({})", describe_arm(&claim.cell)),
    };
    let times = if claim.ratio { " times" } else { "" };
    let mut line = format!(
        "{}{cell}: {}{times} ({}): {}.",
        claim.that,
        format_number(claim.value),
        claim.format_certainty(),
        claim.verdict.as_word()
    );
    if let Some(found) = &claim.found {
        line += &format!(" Source: {found}.");
    }
    if let (Some(because), true) = (&claim.because, claim.verdict != Verdict::Holds) {
        line += &format!(" Reason: {because}");
    }
    line
}
