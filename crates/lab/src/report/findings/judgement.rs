//! Derives the verdict on a claim from the verdicts on its parts.

use super::catalogue::{CataloguedClaim, ClaimCatalogue};
use super::run_data::RunData;
use crate::experiment::document::{Expectation, SourceRange};
use crate::experiment::{Arm, RunPlan};
use crate::report::claims::{ClaimResult, evaluate_expectation};
use crate::report::record_index::{RecordIndex, arm_from_values, arm_has_values};
use crate::report::verdict::Verdict;
use std::collections::BTreeMap;

/// Verdicts from the least to the most favorable. The part with the least favorable verdict decides
/// a group of parts.
const ORDER: [Verdict; 7] = [
    Verdict::Contradicted,
    Verdict::NotMeasured,
    Verdict::Undecided,
    Verdict::DirectionOnly,
    Verdict::Weaker,
    Verdict::Stronger,
    Verdict::Repeated,
];

/// A claim with its verdict.
#[derive(Debug)]
pub(super) struct ClaimFinding {
    /// Its number.
    pub(super) number: u32,
    /// Results of the claim's expectations. An expectation has one result for each arm that has the
    /// values of its keys `of` and `where`.
    pub(super) parts: Vec<ClaimPart>,
    /// Index in `parts` of the part that decides the verdict.
    pub(super) decisive: Option<usize>,
    /// The verdict.
    pub(super) verdict: Verdict,
}

/// One result of an expectation.
#[derive(Debug)]
pub(super) struct ClaimPart {
    /// Index of the run in the catalogue.
    pub(super) run: usize,
    /// Range or direction that the source document reports.
    pub(super) source: SourceRange,
    /// The result.
    pub(super) result: ClaimResult,
}

/// Judges all claims, in the order of the catalogue.
pub(super) fn judge_claims(catalogue: &ClaimCatalogue, runs: &[RunData]) -> Vec<ClaimFinding> {
    let mut parts = evaluate_expectations(runs);
    let claims = catalogue.claim.iter();
    let judge = |claim: &CataloguedClaim| {
        let parts = parts.remove(&claim.number).unwrap_or_default();
        let decisive = find_decisive_part(&parts, &claim.any_of);
        let verdict = decisive.and_then(|at| parts.get(at));
        ClaimFinding {
            number: claim.number,
            verdict: verdict.map_or(Verdict::NotMeasured, |part| part.result.verdict),
            decisive,
            parts,
        }
    };
    claims.map(judge).collect()
}

/// Evaluates every expectation that has a claim number, in all runs. Returns the results by claim
/// number.
fn evaluate_expectations(runs: &[RunData]) -> BTreeMap<u32, Vec<ClaimPart>> {
    let mut parts: BTreeMap<u32, Vec<ClaimPart>> = BTreeMap::new();
    for (run, data) in runs.iter().enumerate() {
        let index = RecordIndex::new(&data.plan, &data.records);
        for expect in &data.plan.document.expect {
            let expect = expect.get_ref();
            let (Some(claim), Some(source)) = (expect.claim, expect.source) else {
                continue;
            };
            if !has_arms_of_expectation(&data.plan, expect) {
                continue;
            }
            let results = evaluate_expectation(expect, &index).into_iter();
            let part = |result| ClaimPart {
                run,
                source,
                result,
            };
            parts.entry(claim).or_default().extend(results.map(part));
        }
    }
    parts
}

/// Returns whether a plan contains the arms that an expectation judges (`of`), and the arms of the
/// comparison (`to`).
fn has_arms_of_expectation(plan: &RunPlan, expect: &Expectation) -> bool {
    let only = arm_from_values(&expect.only);
    let contains = |values: &Arm| {
        let mut arms = plan.arms.iter();
        arms.any(|arm| arm_has_values(arm, values) && arm_has_values(arm, &only))
    };
    contains(&arm_from_values(&expect.of)) && contains(&arm_from_values(&expect.to))
}

/// Returns the index of the part that decides the claim. Parts with equal values of the variables
/// in `any_of` form a group. The part with the least favorable verdict decides its group. The part
/// that decides the best group also decides the claim.
fn find_decisive_part(parts: &[ClaimPart], any_of: &[String]) -> Option<usize> {
    let rank = |at: &usize| {
        let verdict = parts.get(*at).map(|part| part.result.verdict);
        ORDER.iter().position(|each| Some(*each) == verdict)
    };
    let mut groups: BTreeMap<Vec<Option<&String>>, Vec<usize>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        let values = any_of.iter().map(|name| part.result.cell.get(name));
        groups.entry(values.collect()).or_default().push(at);
    }
    let worst = groups
        .into_values()
        .filter_map(|group| group.into_iter().min_by_key(rank));
    // If several groups are equally good, the first group decides.
    worst.reduce(|best, at| if rank(&best) >= rank(&at) { best } else { at })
}
