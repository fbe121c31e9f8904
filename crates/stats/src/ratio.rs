//! The ratio between two configurations that were measured in the same rounds.

use crate::{ConfidenceInterval, mean, median, median_interval};

/// The ratio of two quantities measured in the same rounds. A disturbance of a round affects both
/// of its values and cancels.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatio {
    /// Ratio of each round, in order.
    pub rounds: Vec<f64>,
    /// Median of the ratios: the estimate.
    pub median: f64,
    /// 95 % interval of the median ratio; none with fewer than six rounds.
    pub interval: Option<ConfidenceInterval>,
    /// Geometric mean of the ratios.
    pub geometric: f64,
    /// Ratio of the means. Use it if the cost is the sum of the values, not that of a typical
    /// round.
    pub of_means: f64,
}

impl PairedRatio {
    /// Divides `a[k]` by `b[k]`, both measured in round `k`. Returns `None` without rounds, or
    /// unless all values are positive.
    pub fn from_pairs(a: &[f64], b: &[f64]) -> Option<PairedRatio> {
        if a.len() != b.len() || !are_positive(a) || !are_positive(b) {
            return None;
        }
        let rounds: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        let logs: Vec<f64> = rounds.iter().map(|ratio| ratio.ln()).collect();
        Some(PairedRatio {
            median: median(&logs).exp(),
            interval: median_interval(&rounds),
            geometric: mean(&logs).exp(),
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

/// Returns whether a ratio of these values exists; never without values.
pub(crate) fn are_positive(values: &[f64]) -> bool {
    !values.is_empty() && values.iter().all(|v| v.is_finite() && *v > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{bimodal, lognormal, measure_coverage, normal};

    #[test]
    fn a_disturbed_round_does_not_change_the_ratio() {
        let b = [1.0, 5.0, 0.3, 20.0, 7.0, 2.0];
        let a = b.map(|value| value * 1.5);
        let ratio = PairedRatio::from_pairs(&a, &b).unwrap();
        let near = |value: f64| (value - 1.5).abs() < 1e-9;
        assert!(near(ratio.geometric) && near(ratio.median) && near(ratio.of_means));
        let found = ratio.interval.unwrap();
        assert!(near(found.low) && near(found.high));
        assert!(ratio.rounds.iter().all(|round| near(*round)));
    }

    #[test]
    fn intervals_of_ratios_contain_the_truth_as_often_as_declared() {
        // Rounds vary by a factor of four; the truth is 1.25.
        for (name, (draw, middle)) in [
            ("normal", normal()),
            ("lognormal", lognormal()),
            ("bimodal", bimodal()),
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
        assert!((ratio.geometric - 9.0_f64.powf(0.25)).abs() < 1e-12);
        assert_eq!((ratio.range(), ratio.interval), ([1.0, 9.0], None));
    }

    #[test]
    fn values_that_cannot_be_compared_have_no_ratio() {
        let none: [(&[f64], &[f64]); 4] = [
            (&[], &[]),
            (&[1.0], &[1.0, 2.0]),
            (&[0.0], &[1.0]),
            (&[1.0], &[f64::NAN]),
        ];
        for (a, b) in none {
            assert_eq!(PairedRatio::from_pairs(a, b), None, "{a:?} {b:?}");
        }
    }
}
