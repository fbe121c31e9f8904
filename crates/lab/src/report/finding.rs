//! The first lines: whether the source's finding was repeated, by how much, and if not, why.

use super::arms::words;
use super::claims::{Claim, Verdict};
use super::table::{number, range};
use serde::Serialize;

/// What became of the source's finding.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// In a word.
    pub outcome: Outcome,
    /// For people.
    pub says: String,
    /// Each claim that it rests on: what came, what the source found, why not.
    pub lines: Vec<String>,
}

/// Whether a finding was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of its claims hold.
    Reproduced,
    /// Some hold, some do not.
    Partly,
    /// None holds, and one fails.
    NotReproduced,
    /// Too few rounds, or too much scatter, to say.
    Undecided,
    /// Nothing is claimed.
    NoClaim,
}

impl Finding {
    /// Of the claims that say what the source found; where none does, of all that have bounds.
    pub(super) fn of(claims: &[Claim]) -> Finding {
        let bounded = |claim: &&Claim| claim.verdict != Verdict::Told;
        let of_source = |claim: &&Claim| claim.found.is_some();
        let mut rests: Vec<&Claim> = claims.iter().filter(bounded).filter(of_source).collect();
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
            () if all == 0 => Outcome::NoClaim,
            () if hold == all => Outcome::Reproduced,
            () if hold > 0 && fail > 0 => Outcome::Partly,
            () if fail > 0 => Outcome::NotReproduced,
            () => Outcome::Undecided,
        };
        let what = if from_source {
            "of what the source found"
        } else {
            "of what was expected"
        };
        let left = all - hold - fail;
        let counts = format!("{hold} {what} hold, {fail} fail, {left} undecided");
        let says = match outcome {
            Outcome::Reproduced => format!("Reproduced: all {all} {what} hold."),
            Outcome::Partly => format!("Partly reproduced: {counts}."),
            Outcome::NotReproduced => format!("Not reproduced: {counts}."),
            Outcome::Undecided => format!("Undecided: {counts}; more rounds would tell."),
            Outcome::NoClaim => "Nothing is claimed.".into(),
        };
        Finding {
            outcome,
            says,
            lines: rests.into_iter().map(line).collect(),
        }
    }
}

/// A claim in a sentence.
fn line(claim: &Claim) -> String {
    let cell = match claim.cell.is_empty() {
        true => String::new(),
        false => format!(" ({})", words(&claim.cell)),
    };
    let times = if claim.ratio { " times" } else { "" };
    let mut line = format!(
        "{}{cell}: {}{times} ({} in 95 %, {} rounds): {}.",
        claim.that,
        number(claim.value),
        range(claim.interval),
        claim.n,
        claim.verdict.word()
    );
    if let Some(found) = &claim.found {
        line += &format!(" The source: {found}.");
    }
    if let (Some(because), true) = (&claim.because, claim.verdict != Verdict::Holds) {
        line += &format!(" Why: {because}");
    }
    line
}
