//! The ratio between two configurations that were not measured in the same rounds.

use crate::paired_ratio::are_finite_nonnegative;
use crate::{ConfidenceInterval, median};

/// Minimum number of values on each side for which an interval is computed. Paired rounds have the
/// same minimum.
const VALUES_MIN: usize = 6;
/// Maximum number of values that are used on each side. The number of pairs is at most the square
/// of this number.
const VALUES_MAX: usize = 400;
/// Maximum probability that the true value is below the interval. The same maximum applies to a
/// true value above the interval.
const TAIL_MAX: f64 = 0.025;

/// Returns the estimated ratio of `a` to `b`, and its 95 % confidence interval. The estimate is the
/// median of the ratios of every value of `a` to every value of `b` (Hodges and Lehmann 1963). The
/// interval is computed by inverting the rank-sum test (Hollander and Wolfe, section 4.3). The
/// interval is `None` if a side has fewer than six values. Uses only the first 400 values of each
/// side. A ratio to zero is infinite. Returns `None` if a side is empty, if a value is negative or
/// not finite, or if both sides contain a zero.
pub fn unpaired_ratio(a: &[f64], b: &[f64]) -> Option<(f64, Option<ConfidenceInterval>)> {
    let first = |values: &[f64]| {
        values
            .iter()
            .copied()
            .take(VALUES_MAX)
            .collect::<Vec<f64>>()
    };
    let (a, b) = (first(a), first(b));
    let has_zero = |values: &[f64]| values.contains(&0.0);
    if !are_finite_nonnegative(&a) || !are_finite_nonnegative(&b) || has_zero(&a) && has_zero(&b) {
        return None;
    }
    let ratio_to = |b: &f64| a.iter().map(move |a| a / *b).collect::<Vec<f64>>();
    let mut ratios: Vec<f64> = b.iter().flat_map(ratio_to).collect();
    ratios.sort_by(f64::total_cmp);
    let interval = (a.len().min(b.len()) >= VALUES_MIN).then(|| {
        let outside = find_mann_whitney_rank(a.len(), b.len()).saturating_sub(1);
        let at = |place: usize| ratios.get(place).copied().unwrap_or(f64::NAN);
        ConfidenceInterval {
            low: at(outside),
            high: at(ratios.len() - 1 - outside),
        }
    });
    Some((median(&ratios), interval))
}

/// Returns the rank of both ends of the interval among the sorted ratios. Ranks start at 1. The
/// rank of the lower end is counted from the smallest ratio, and the rank of the upper end is
/// counted from the largest ratio. If both distributions are equal, the probability that the
/// Mann-Whitney statistic is less than the rank is at most 2.5 %. The returned rank is the largest
/// rank with this property.
fn find_mann_whitney_rank(n: usize, m: usize) -> usize {
    let shares = rank_sum_distribution(n, m);
    let mut tail = 0.0;
    let exceeds = |share: &f64| {
        tail += share;
        tail > TAIL_MAX
    };
    shares.iter().position(exceeds).unwrap_or(0)
}

/// Returns the probability of each value of the Mann-Whitney statistic if both distributions are
/// equal. The first probability is that of the value 0.
fn rank_sum_distribution(n: usize, m: usize) -> Vec<f64> {
    // The generating function is the product of (1 − q^(m+i)) / (1 − q^i) over i from 1 to n. Each
    // factor is scaled by i / (m+i), so that the coefficients stay probabilities.
    let mut shares = vec![0.0; n * m + 1];
    shares[0] = 1.0;
    for i in 1..=n {
        let scale = i as f64 / (m + i) as f64;
        for place in (m + i..shares.len()).rev() {
            shares[place] -= shares[place - m - i];
        }
        for place in i..shares.len() {
            shares[place] += shares[place - i];
        }
        shares.iter_mut().for_each(|share| *share *= scale);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{
        bimodal_distribution, known_normal_distribution, lognormal_distribution, measure_coverage,
    };

    #[test]
    fn intervals_of_unpaired_ratios_contain_the_truth_as_often_as_declared() {
        for (name, (draw, _)) in [
            ("normal", known_normal_distribution()),
            ("lognormal", lognormal_distribution()),
            ("bimodal", bimodal_distribution()),
        ] {
            for (n, m) in [(6, 6), (8, 6), (10, 10), (20, 12)] {
                let share = measure_coverage(|random| {
                    let a: Vec<f64> = (0..n).map(|_| 1.25 * draw(random).max(1e-9)).collect();
                    let b: Vec<f64> = (0..m).map(|_| draw(random).max(1e-9)).collect();
                    let (ratio, interval) = unpaired_ratio(&a, &b).unwrap();
                    let interval = interval.unwrap();
                    assert!(interval.low <= ratio && ratio <= interval.high);
                    (interval.low..=interval.high).contains(&1.25)
                });
                assert!(share >= 0.93, "{name}, {n} and {m} values: {share}");
            }
        }
    }

    #[test]
    fn few_or_impossible_values_have_no_interval() {
        assert_eq!(unpaired_ratio(&[1.0; 5], &[1.0; 9]).unwrap(), (1.0, None));
        assert_eq!(unpaired_ratio(&[0.0; 6], &[0.0; 6]), None);
        let (zero, interval) = unpaired_ratio(&[0.0; 6], &[1.0; 6]).unwrap();
        assert_eq!((zero, interval.unwrap().high), (0.0, 0.0));
        let (infinite, interval) = unpaired_ratio(&[1.0; 6], &[0.0; 6]).unwrap();
        assert_eq!(
            (infinite, interval.unwrap().low),
            (f64::INFINITY, f64::INFINITY)
        );
        assert_eq!(unpaired_ratio(&[], &[1.0; 6]), None);
        // The result stays accurate for the maximum number of values.
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        let (ratio, interval) = unpaired_ratio(&many, &many).unwrap();
        let interval = interval.unwrap();
        assert!((ratio - 1.0).abs() < 0.01 && interval.low > 0.8 && interval.high < 1.25);
    }

    #[test]
    fn the_distribution_is_that_of_published_tables() {
        // Tuples of n, m and the rank. The rank is one more than the critical value of U for a
        // two-sided test at 5 % (Mann and Whitney 1947).
        for (n, m, rank) in [
            (6, 6, 6),
            (8, 8, 14),
            (10, 10, 24),
            (20, 20, 128),
            (6, 10, 12),
        ] {
            assert_eq!(find_mann_whitney_rank(n, m), rank, "{n} {m}");
        }
        let sum: f64 = rank_sum_distribution(9, 7).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}
