//! Ratios between the measurements of two configurations.

use crate::bootstrap::difference_interval;
use crate::{ConfidenceInterval, bootstrap_interval, mean, median};

/// The ratio of two quantities measured in the same rounds. A disturbance of a round affects both
/// of its values and cancels.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatio {
    /// Ratio of each round, in order.
    pub rounds: Vec<f64>,
    /// Median of the ratios.
    pub median: f64,
    /// Geometric mean of the ratios.
    pub geometric: f64,
    /// 95 % bootstrap interval of `geometric`, over rounds; none with fewer than three.
    pub interval: Option<ConfidenceInterval>,
    /// Ratio of the means. Use it if the cost is the sum of the values, not that of a typical
    /// round.
    pub of_means: f64,
}

impl PairedRatio {
    /// Divides `a[k]` by `b[k]`, both measured in round `k`. Returns `None` without rounds, or
    /// unless all values are positive.
    pub fn from_pairs(a: &[f64], b: &[f64], seed: u64) -> Option<PairedRatio> {
        let are_positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
        if a.is_empty() || a.len() != b.len() || !are_positive(a) || !are_positive(b) {
            return None;
        }
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
        let geometric = |logs: &[f64]| mean(logs).exp();
        Some(PairedRatio {
            median: median(&logs).exp(),
            geometric: geometric(&logs),
            interval: bootstrap_interval(&logs, geometric, seed),
            of_means: mean(a) / mean(b),
            rounds: logs.into_iter().map(f64::exp).collect(),
        })
    }
}

/// Returns the ratio of the geometric means of two samples that were not measured in the same
/// rounds. The 95 % bootstrap interval resamples each side independently, and is `None` below three
/// values of a side. Returns `None` unless both sides have only positive values.
pub fn unpaired_ratio(
    a: &[f64],
    b: &[f64],
    seed: u64,
) -> Option<(f64, Option<ConfidenceInterval>)> {
    let are_positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
    if a.is_empty() || b.is_empty() || !are_positive(a) || !are_positive(b) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let interval = difference_interval(&a, &b, mean, seed).map(|found| ConfidenceInterval {
        low: found.low.exp(),
        high: found.high.exp(),
    });
    Some(((mean(&a) - mean(&b)).exp(), interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_disturbed_round_does_not_change_the_ratio() {
        let b = [1.0, 5.0, 0.3, 20.0];
        let a = b.map(|value| value * 1.5);
        let ratio = PairedRatio::from_pairs(&a, &b, 1).unwrap();
        let near = |value: f64| (value - 1.5).abs() < 1e-9;
        assert!(near(ratio.geometric) && near(ratio.median) && near(ratio.of_means));
        let found = ratio.interval.unwrap();
        assert!(near(found.low) && near(found.high));
        assert!(ratio.rounds.iter().all(|round| near(*round)));
    }

    #[test]
    fn a_planted_ratio_is_found_under_noise() {
        // Rounds vary by a factor of four, values by a tenth.
        let holds = |seed| {
            let mut random = Random::of(3, seed);
            let mut noise = || 1.0 + 0.2 * (random.unit() - 0.5);
            let rounds: Vec<(f64, f64)> = (0..20)
                .map(|k| {
                    let pace = 1.0 + f64::from(k % 4);
                    (pace * 1.25 * noise(), pace * noise())
                })
                .collect();
            let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let found = PairedRatio::from_pairs(&a, &b, seed)
                .unwrap()
                .interval
                .unwrap();
            assert!(found.high / found.low < 1.2);
            (found.low..=found.high).contains(&1.25)
        };
        let held = (0..100).filter(|seed| holds(*seed)).count();
        assert!((83..=99).contains(&held), "{held}");
    }

    #[test]
    fn means_and_medians_differ_where_values_have_two_modes() {
        let ratio = PairedRatio::from_pairs(&[1.0, 1.0, 1.0, 9.0], &[1.0; 4], 1).unwrap();
        assert_eq!((ratio.median, ratio.of_means), (1.0, 3.0));
        assert!((ratio.geometric - 9.0_f64.powf(0.25)).abs() < 1e-12);
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
            assert_eq!(PairedRatio::from_pairs(a, b, 1), None, "{a:?} {b:?}");
        }
    }

    #[test]
    fn unpaired_samples_are_compared_with_their_noise() {
        // The truth is 1.25 and values vary by a tenth: most intervals contain it, and exclude 1.
        let found = |seed, factor: f64| {
            let mut random = Random::of(9, seed);
            let mut noise = || 1.0 + 0.2 * (random.unit() - 0.5);
            let a: Vec<f64> = (0..12).map(|_| factor * noise()).collect();
            let b: Vec<f64> = (0..9).map(|_| noise()).collect();
            let (ratio, interval) = unpaired_ratio(&a, &b, seed).unwrap();
            let interval = interval.unwrap();
            assert!(interval.low < ratio && ratio < interval.high);
            interval
        };
        let holds = |seed: &u64| (found(*seed, 1.25).low..=found(*seed, 1.25).high).contains(&1.25);
        let held = (0..50).filter(holds).count();
        assert!((40..=50).contains(&held), "{held}");
        assert!((0..50).all(|seed| found(seed, 1.25).low > 1.0));
        assert_eq!(unpaired_ratio(&[1.0, 2.0], &[1.0; 9], 1).unwrap().1, None);
        assert_eq!(unpaired_ratio(&[0.0; 3], &[1.0; 3], 1), None);
        assert_eq!(unpaired_ratio(&[], &[1.0; 3], 1), None);
    }
}
