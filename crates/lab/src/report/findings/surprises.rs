//! The most surprising results: those that deviate most from the figure of the source.

use super::judgement::{ClaimFinding, ClaimPart};
use crate::experiment::document::SourceRange;
use crate::report::verdict::Verdict;

/// Number of results on the page.
const COUNT: usize = 3;

/// Returns the claims with the largest deviations, each with its most deviating part.
pub(super) fn list_surprises(claims: &[ClaimFinding]) -> Vec<(&ClaimFinding, &ClaimPart)> {
    let most = |claim| {
        let parts = parts_with_deviation(claim);
        parts.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let mut found: Vec<_> = claims
        .iter()
        .filter_map(|claim| most(claim).map(|(part, deviation)| (claim, part, deviation)))
        .collect();
    // The sort is stable, so that equal deviations stay in the order of the claims.
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
    found.truncate(COUNT);
    found
        .into_iter()
        .map(|(claim, part, _)| (claim, part))
        .collect()
}

fn parts_with_deviation(claim: &ClaimFinding) -> impl Iterator<Item = (&ClaimPart, f64)> {
    let parts = claim.parts.iter();
    parts.filter_map(|part| Some((part, measure_deviation(part)?)))
}

/// Returns the deviation of a value from the nearest figure of the source: the absolute value of
/// the logarithm of their ratio. Returns `None` if the result is within the source's range, or if
/// the deviation is not finite and the value is no ratio. A ratio of zero or infinity is an
/// infinite deviation.
fn measure_deviation(part: &ClaimPart) -> Option<f64> {
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
