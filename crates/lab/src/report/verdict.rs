//! Judges a claim by comparing its confidence interval with bounds that were fixed before the run.

use crate::experiment::document::{Expectation, RatioDirection, SourceRange};
use serde::{Deserialize, Serialize};

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval overlaps the source's range and confirms the source's direction. If the source
    /// found no effect, the interval is within the source's range.
    Repeated,
    /// The effect has the source's direction and exceeds the source's range.
    Stronger,
    /// The effect has the source's direction and does not reach the source's range.
    Weaker,
    /// The effect has the source's direction, and the source reports no figure.
    DirectionOnly,
    /// The interval excludes every effect in the source's direction. If the source found no effect,
    /// the interval is outside the source's range.
    Contradicted,
    /// The interval allows several of the verdicts above, or there are too few rounds for an
    /// interval.
    Undecided,
    /// No run measured the claim with its present bounds.
    NotMeasured,
    /// The interval is within the bounds of our own claim.
    AsExpected,
    /// The interval is outside the bounds of our own claim.
    NotAsExpected,
    /// The claim has no bounds.
    #[serde(rename = "told")]
    Reported,
}

impl Verdict {
    /// Verdicts on claims of a source, in the order of the headline.
    pub(super) const OF_SOURCE: [Verdict; 7] = [
        Verdict::Repeated,
        Verdict::Stronger,
        Verdict::Weaker,
        Verdict::DirectionOnly,
        Verdict::Contradicted,
        Verdict::Undecided,
        Verdict::NotMeasured,
    ];

    /// Returns the verdict in words.
    pub(super) fn as_words(self) -> &'static str {
        match self {
            Verdict::Repeated => "repeated",
            Verdict::Stronger => "stronger",
            Verdict::Weaker => "weaker",
            Verdict::DirectionOnly => "direction only",
            Verdict::Contradicted => "contradicted",
            Verdict::Undecided => "undecided",
            Verdict::NotMeasured => "not measured",
            Verdict::AsExpected => "as expected",
            Verdict::NotAsExpected => "not as expected",
            Verdict::Reported => "reported",
        }
    }
}

/// The bounds of a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ClaimBounds {
    /// Lower and upper bound of our own claim.
    Own([f64; 2]),
    /// The range or direction that the source reports, and the neutral value, which means no
    /// effect. The neutral value is 1 for ratios and 0 for other values.
    Source(SourceRange, f64),
}

impl ClaimBounds {
    /// Returns the bounds of an expectation, if it has any.
    pub(super) fn from_expectation(expect: &Expectation) -> Option<ClaimBounds> {
        let neutral = if expect.to.is_empty() { 0.0 } else { 1.0 };
        let from_bounds = |at_least: Option<f64>, at_most: Option<f64>| {
            let ends = [
                at_least.unwrap_or(f64::NEG_INFINITY),
                at_most.unwrap_or(f64::INFINITY),
            ];
            at_least.or(at_most).map(|_| ClaimBounds::Own(ends))
        };
        match expect.source {
            Some(source) => Some(ClaimBounds::Source(source, neutral)),
            None => from_bounds(expect.at_least, expect.at_most),
        }
    }

    /// Judges a claim by its confidence interval. A claim without an interval is undecided.
    pub(super) fn judge_interval(self, interval: Option<[f64; 2]>) -> Verdict {
        let Some([low, high]) = interval else {
            return Verdict::Undecided;
        };
        match self {
            ClaimBounds::Own([min, max]) if low >= min && high <= max => Verdict::AsExpected,
            ClaimBounds::Own([min, max]) if high < min || low > max => Verdict::NotAsExpected,
            ClaimBounds::Own(_) => Verdict::Undecided,
            ClaimBounds::Source(SourceRange::Direction(direction), neutral) => {
                let agrees = match direction {
                    RatioDirection::More => [low > neutral, high <= neutral],
                    RatioDirection::Less => [high < neutral, low >= neutral],
                };
                match agrees {
                    [true, _] => Verdict::DirectionOnly,
                    [_, true] => Verdict::Contradicted,
                    _ => Verdict::Undecided,
                }
            }
            ClaimBounds::Source(SourceRange::Figures(range), neutral) => {
                judge_by_published_range([low, high], range, neutral)
            }
        }
    }
}

/// Compares an interval with the source's range. If the source found an effect, an interval that
/// contains the neutral value does not establish a direction. A range that ends at the neutral
/// value, such as "up to 24 % higher", has a direction. If the source found no effect and the
/// interval is only partly within the source's range, the claim is undecided, because an effect
/// remains possible.
fn judge_by_published_range(
    [low, high]: [f64; 2],
    [source_low, source_high]: [f64; 2],
    neutral: f64,
) -> Verdict {
    let found_no_effect = source_low < neutral && neutral < source_high
        || source_low == neutral && source_high == neutral;
    let meets = low <= source_high && high >= source_low;
    if meets {
        let is_established = match found_no_effect {
            true => low >= source_low && high <= source_high,
            false => low > neutral || high < neutral,
        };
        return match is_established {
            true => Verdict::Repeated,
            false => Verdict::Undecided,
        };
    }
    // An interval outside the range contradicts a source that found no effect.
    if found_no_effect {
        return Verdict::Contradicted;
    }
    // If the source's effect is below the neutral value, mirrors the interval and the range at the
    // neutral value. The following comparison then needs only one direction.
    let [low, high, source_high] = match source_high <= neutral {
        true => [
            2.0 * neutral - high,
            2.0 * neutral - low,
            2.0 * neutral - source_low,
        ],
        false => [low, high, source_high],
    };
    match () {
        () if low > source_high => Verdict::Stronger,
        () if high <= neutral => Verdict::Contradicted,
        () if low > neutral => Verdict::Weaker,
        () => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_compared_with_the_range_of_the_source() {
        let (up, down, none) = ([1.1, 1.24], [0.73, 0.9], [0.95, 1.05]);
        let (up_to, down_to) = ([1.0, 1.24], [0.73, 1.0]);
        for (interval, range, verdict) in [
            ([1.2, 1.4], up, Verdict::Repeated),
            ([1.15, 1.2], up, Verdict::Repeated),
            ([3.7, 4.1], up, Verdict::Stronger),
            ([1.02, 1.05], up, Verdict::Weaker),
            ([0.7, 0.9], up, Verdict::Contradicted),
            ([0.9, 1.05], up, Verdict::Undecided),
            ([0.9, 1.3], up, Verdict::Undecided),
            ([0.8, 0.95], down, Verdict::Repeated),
            ([0.31, 0.34], down, Verdict::Stronger),
            ([0.95, 0.98], down, Verdict::Weaker),
            ([1.2, 1.3], down, Verdict::Contradicted),
            ([0.95, 1.1], down, Verdict::Undecided),
            ([0.97, 1.02], none, Verdict::Repeated),
            ([0.97, 1.2], none, Verdict::Undecided),
            ([1.2, 1.3], none, Verdict::Contradicted),
            ([1.0, 1.0], up, Verdict::Contradicted),
            // One end of the source ranges `up_to` and `down_to` is the neutral value 1.0. Each of
            // these ranges has a direction.
            ([1.02, 1.1], up_to, Verdict::Repeated),
            ([1.2, 1.3], up_to, Verdict::Repeated),
            ([1.3, 1.4], up_to, Verdict::Stronger),
            ([0.85, 1.02], up_to, Verdict::Undecided),
            ([0.9, 1.5], up_to, Verdict::Undecided),
            ([1.0, 1.1], up_to, Verdict::Undecided),
            ([0.9, 1.0], up_to, Verdict::Undecided),
            ([0.85, 0.98], up_to, Verdict::Contradicted),
            ([0.8, 0.95], down_to, Verdict::Repeated),
            ([0.5, 0.6], down_to, Verdict::Stronger),
            ([0.85, 1.02], down_to, Verdict::Undecided),
            ([1.0, 1.2], down_to, Verdict::Undecided),
            ([1.02, 1.2], down_to, Verdict::Contradicted),
        ] {
            let bounds = ClaimBounds::Source(SourceRange::Figures(range), 1.0);
            assert_eq!(
                bounds.judge_interval(Some(interval)),
                verdict,
                "{interval:?} {range:?}"
            );
            assert_eq!(bounds.judge_interval(None), Verdict::Undecided);
        }
    }

    #[test]
    fn values_without_a_denominator_have_an_effect_above_zero() {
        let (count, share, zero) = ([1.0, 300.0], [0.28, 0.30], [0.0, 0.0]);
        for (interval, range, verdict) in [
            ([0.25, 0.27], share, Verdict::Weaker),
            ([0.0, 0.0], count, Verdict::Contradicted),
            ([0.0, 0.5], count, Verdict::Undecided),
            ([0.0, 5.0], count, Verdict::Undecided),
            ([0.2, 0.5], count, Verdict::Weaker),
            ([3.0, 5.0], count, Verdict::Repeated),
            ([400.0, 500.0], count, Verdict::Stronger),
            ([0.0, 0.0], zero, Verdict::Repeated),
            ([0.0, 7.0], zero, Verdict::Undecided),
            ([2.0, 3.0], zero, Verdict::Contradicted),
            ([-3.0, -2.0], zero, Verdict::Contradicted),
        ] {
            let bounds = ClaimBounds::Source(SourceRange::Figures(range), 0.0);
            let found = bounds.judge_interval(Some(interval));
            assert_eq!(found, verdict, "{interval:?} {range:?}");
        }
        let more = ClaimBounds::Source(SourceRange::Direction(RatioDirection::More), 0.0);
        assert_eq!(more.judge_interval(Some([0.0, 0.0])), Verdict::Contradicted);
        assert_eq!(more.judge_interval(Some([0.0, 2.0])), Verdict::Undecided);
    }

    #[test]
    fn a_source_without_figures_gives_a_direction() {
        let less = SourceRange::Direction(RatioDirection::Less);
        for (interval, verdict) in [
            ([0.2, 0.3], Verdict::DirectionOnly),
            ([1.1, 1.3], Verdict::Contradicted),
            ([1.0, 1.0], Verdict::Contradicted),
            ([0.9, 1.1], Verdict::Undecided),
        ] {
            let bounds = ClaimBounds::Source(less, 1.0);
            assert_eq!(
                bounds.judge_interval(Some(interval)),
                verdict,
                "{interval:?}"
            );
        }
    }

    #[test]
    fn our_own_bounds_are_expectations() {
        let own = ClaimBounds::Own([1.0, f64::INFINITY]);
        assert_eq!(own.judge_interval(Some([1.1, 9.0])), Verdict::AsExpected);
        assert_eq!(own.judge_interval(Some([0.5, 0.9])), Verdict::NotAsExpected);
        assert_eq!(own.judge_interval(Some([0.5, 1.9])), Verdict::Undecided);
    }
}
