//! Confidence intervals of medians. The intervals are computed from order statistics, and do not
//! assume a particular distribution.

use std::f64::consts::LN_2;

/// Maximum probability that the true value is below the interval. The same maximum applies to a
/// true value above the interval.
const TAIL_MAX: f64 = 0.025;

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Returns a confidence interval of the median of the distribution from which the values were drawn
/// (Hollander and Wolfe, Nonparametric Statistical Methods, section 3.6). The interval contains
/// this median in at least 95 % of all samples of any continuous distribution. For six values, the
/// interval is the range of the values (96.9 %). Returns `None` for fewer than six values. The
/// values must be independent, so reduce the measurements of one round to one value first.
pub fn median_interval(values: &[f64]) -> Option<ConfidenceInterval> {
    let outside = find_median_interval_rank(values.len()).checked_sub(1)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = sorted.len().checked_sub(outside + 1)?;
    Some(ConfidenceInterval {
        low: *sorted.get(outside)?,
        high: *sorted.get(high)?,
    })
}

/// Returns the rank of both ends of the interval among the sorted values. Ranks start at 1. The
/// rank of the lower end is counted from the smallest value, and the rank of the upper end is
/// counted from the largest value. Returns 0 if no interval of `n` values reaches 95 %.
fn find_median_interval_rank(n: usize) -> usize {
    // The number of values below the median has a binomial distribution with probability 1/2.
    let mut ln_probability = -(n as f64) * LN_2;
    let mut tail = 0.0;
    (0..n)
        .find(|below| {
            tail += ln_probability.exp();
            ln_probability += ((n - below) as f64 / (below + 1) as f64).ln();
            tail > TAIL_MAX
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{
        bimodal_distribution, known_normal_distribution, lognormal_distribution, measure_coverage,
    };

    #[test]
    fn intervals_contain_the_median_as_often_as_declared() {
        for (name, (draw, median)) in [
            ("normal", known_normal_distribution()),
            ("lognormal", lognormal_distribution()),
            ("bimodal", bimodal_distribution()),
        ] {
            for n in [6, 8, 10, 20] {
                let share = measure_coverage(|random| {
                    let values: Vec<f64> = (0..n).map(|_| draw(random)).collect();
                    let found = median_interval(&values).unwrap();
                    (found.low..=found.high).contains(&median)
                });
                assert!(share >= 0.93, "{name}, {n} values: {share}");
            }
        }
    }

    #[test]
    fn fewer_than_six_values_have_no_interval() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0, 6.0];
        assert_eq!(median_interval(&values[..5]), None);
        assert_eq!(median_interval(&[]), None);
        let range = ConfidenceInterval {
            low: 1.0,
            high: 6.0,
        };
        assert_eq!(median_interval(&values), Some(range));
    }

    #[test]
    fn ranks_are_those_of_published_tables() {
        // Pairs of n and the rank of the interval's ends (Hollander and Wolfe, table A.2, sign
        // test).
        for (n, rank) in [
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (12, 3),
            (20, 6),
            (30, 10),
            (100, 40),
        ] {
            assert_eq!(find_median_interval_rank(n), rank, "{n}");
        }
        // For this n, the first probabilities are too small for an `f64`. This does not change the
        // rank.
        assert!((4850..5000).contains(&find_median_interval_rank(10_000)));
    }
}
