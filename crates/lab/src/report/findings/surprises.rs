//! Finds the most surprising results, which deviate most from the figures of the sources.

use super::judgement::{ClaimFinding, ClaimPart};
use crate::experiment::document::SourceRange;
use crate::report::verdict::Verdict;

/// Maximum number of results on the page.
const COUNT: usize = 3;

/// Returns the claims with the largest deviations, and the part of each claim that deviates most.
pub(super) fn list_surprises(claims: &[ClaimFinding]) -> Vec<(&ClaimFinding, &ClaimPart)> {
    let most = |claim| {
        let parts = parts_with_deviation(claim);
        parts.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let mut found: Vec<_> = claims
        .iter()
        .filter_map(|claim| most(claim).map(|(part, deviation)| (claim, part, deviation)))
        .collect();
    // Claims with equal deviations stay in the order of the catalogue, because the sort is stable.
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
    found.truncate(COUNT);
    found
        .into_iter()
        .map(|(claim, part, _)| (claim, part))
        .collect()
}

fn parts_with_deviation(claim: &ClaimFinding) -> impl Iterator<Item = (&ClaimPart, f64)> {
    let parts = claim.parts.iter();
    parts.filter_map(|part| Some((part, deviation_from_source(part)?)))
}

/// Returns the deviation of a value from the nearest figure of the source. The deviation is the
/// absolute value of the logarithm of the ratio of value and figure. It is infinite if the ratio is
/// zero or infinite. Returns `None` if the verdict is not `Stronger`, `Weaker` or `Contradicted`.
/// Also returns `None` for a value that is not a ratio, if its deviation is not finite.
fn deviation_from_source(part: &ClaimPart) -> Option<f64> {
    let differs = matches!(
        part.result.verdict,
        Verdict::Stronger | Verdict::Weaker | Verdict::Contradicted
    );
    let value = part.result.value;
    let nearest = match part.source {
        SourceRange::Figures([low, _]) if value < low => low,
        SourceRange::Figures([_, high]) => high,
        SourceRange::Direction(_) => 1.0,
    };
    let factor = (value / nearest).ln().abs();
    (differs && (factor.is_finite() || part.result.ratio)).then_some(factor)
}
