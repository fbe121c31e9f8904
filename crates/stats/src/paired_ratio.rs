//! The ratio between two configurations that were measured in the same rounds.

use crate::{ConfidenceInterval, mean, median, median_interval};

/// The ratio of two quantities that were measured in the same rounds. A disturbance of a round
/// affects both values of the round, so the effect of the disturbance cancels in the ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatio {
    /// Ratio of each round, in order.
    pub rounds: Vec<f64>,
    /// Median of the ratios, which is the estimate of the true ratio.
    pub median: f64,
    /// 95 % confidence interval of the median ratio; `None` for fewer than six rounds.
    pub interval: Option<ConfidenceInterval>,
    /// Geometric mean of the ratios; `None` if one ratio is zero and another ratio is infinite.
    pub geometric: Option<f64>,
    /// Ratio of the mean of `a` to the mean of `b`. Use this ratio if the total over all rounds
    /// matters more than a typical round.
    pub of_means: f64,
}

impl PairedRatio {
    /// Divides `a[k]` by `b[k]`, both measured in round `k`. If `b[k]` is zero, the ratio is
    /// infinite. Returns `None` if there are no rounds, if the lengths differ, if a value is
    /// negative or not finite, or if both values of a round are zero.
    pub fn from_pairs(a: &[f64], b: &[f64]) -> Option<PairedRatio> {
        let has_ratio = |(a, b): (&f64, &f64)| *a > 0.0 || *b > 0.0;
        if a.len() != b.len() || !are_finite_nonnegative(a) || !are_finite_nonnegative(b) {
            return None;
        }
        if !a.iter().zip(b).all(has_ratio) {
            return None;
        }
        let rounds: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        let logs: Vec<f64> = rounds.iter().map(|ratio| ratio.ln()).collect();
        let geometric = mean(&logs).exp();
        Some(PairedRatio {
            median: median_ratio(&logs),
            interval: median_interval(&rounds),
            geometric: (!geometric.is_nan()).then_some(geometric),
            of_means: mean(a) / mean(b),
            rounds,
        })
    }

    /// Returns the smallest and the largest ratio.
    pub fn range(&self) -> [f64; 2] {
        let least = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rounds.iter().copied().fold(0.0, f64::max);
        [least, most]
    }
}

/// Returns the median of the ratios that have these logarithms. For an even number of ratios, the
/// median is the geometric mean of the two ratios in the middle. Exchanging numerators and
/// denominators therefore inverts the median.
fn median_ratio(logs: &[f64]) -> f64 {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    let middle = [at((logs.len() - 1) / 2), at(logs.len() / 2)];
    match middle {
        // The ratios in the middle are zero and infinity. These two ratios are reciprocals, so the
        // median must equal its own reciprocal. The median is therefore 1.
        [f64::NEG_INFINITY, f64::INFINITY] => 1.0,
        [f64::NEG_INFINITY, _] => 0.0,
        [_, f64::INFINITY] => f64::INFINITY,
        _ => median(logs).exp(),
    }
}

/// Returns whether all values are finite and not negative. Returns `false` if there are no values.
pub(crate) fn are_finite_nonnegative(values: &[f64]) -> bool {
    !values.is_empty() && values.iter().all(|v| v.is_finite() && *v >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{
        bimodal_distribution, known_normal_distribution, lognormal_distribution, measure_coverage,
    };

    #[test]
    fn a_disturbed_round_does_not_change_the_ratio() {
        let b = [1.0, 5.0, 0.3, 20.0, 7.0, 2.0];
        let a = b.map(|value| value * 1.5);
        let ratio = PairedRatio::from_pairs(&a, &b).unwrap();
        let near = |value: f64| (value - 1.5).abs() < 1e-9;
        assert!(near(ratio.geometric.unwrap()) && near(ratio.median) && near(ratio.of_means));
        let found = ratio.interval.unwrap();
        assert!(near(found.low) && near(found.high));
        assert!(ratio.rounds.iter().all(|round| near(*round)));
    }

    #[test]
    fn intervals_of_ratios_contain_the_truth_as_often_as_declared() {
        // The values of different rounds differ by a factor of up to four. The true ratio is 1.25.
        for (name, (draw, middle)) in [
            ("normal", known_normal_distribution()),
            ("lognormal", lognormal_distribution()),
            ("bimodal", bimodal_distribution()),
        ] {
            for n in [6, 8, 10, 20] {
                let share = measure_coverage(|random| {
                    let pairs = (0..n).map(|k| {
                        let pace = 1.0 + f64::from(k % 4);
                        (pace * 1.25 * draw(random).max(1e-9) / middle, pace)
                    });
                    let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
                    let found = PairedRatio::from_pairs(&a, &b).and_then(|ratio| ratio.interval);
                    found.is_some_and(|found| (found.low..=found.high).contains(&1.25))
                });
                assert!(share >= 0.93, "{name}, {n} rounds: {share}");
            }
        }
    }

    #[test]
    fn means_and_medians_differ_where_values_have_two_modes() {
        let ratio = PairedRatio::from_pairs(&[1.0, 1.0, 1.0, 9.0], &[1.0; 4]).unwrap();
        assert_eq!((ratio.median, ratio.of_means), (1.0, 3.0));
        assert!((ratio.geometric.unwrap() - 9.0_f64.powf(0.25)).abs() < 1e-12);
        assert_eq!((ratio.range(), ratio.interval), ([1.0, 9.0], None));
    }

    #[test]
    fn ratios_of_and_to_zero_have_an_order() {
        let (some, none) = ([2.0; 6], [0.0; 6]);
        let zero = PairedRatio::from_pairs(&none, &some).unwrap();
        assert_eq!(
            (zero.median, zero.geometric, zero.of_means),
            (0.0, Some(0.0), 0.0)
        );
        let found = zero.interval.unwrap();
        assert_eq!((found.low, found.high), (0.0, 0.0));
        let infinite = PairedRatio::from_pairs(&some, &none).unwrap();
        let infinity = f64::INFINITY;
        assert_eq!((infinite.median, infinite.of_means), (infinity, infinity));
        assert_eq!(infinite.geometric, Some(infinity));
        let found = infinite.interval.unwrap();
        assert_eq!((found.low, found.high), (infinity, infinity));
        // Only the first and the last round contain a zero, so the median is the ratio of another
        // round.
        let a = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0];
        let mixed = PairedRatio::from_pairs(&a, &b).unwrap();
        assert!((mixed.median - 3.0).abs() < 1e-12);
        assert_eq!((mixed.geometric, mixed.range()), (None, [0.0, infinity]));
        let even = PairedRatio::from_pairs(&[0.0, 1.0], &[1.0, 0.0]).unwrap();
        assert_eq!(even.median, 1.0);
    }

    #[test]
    fn values_that_cannot_be_compared_have_no_ratio() {
        let none: [(&[f64], &[f64]); 5] = [
            (&[], &[]),
            (&[1.0], &[1.0, 2.0]),
            (&[1.0, 0.0], &[1.0, 0.0]),
            (&[-1.0], &[1.0]),
            (&[1.0], &[f64::NAN]),
        ];
        for (a, b) in none {
            assert_eq!(PairedRatio::from_pairs(a, b), None, "{a:?} {b:?}");
        }
    }
}
