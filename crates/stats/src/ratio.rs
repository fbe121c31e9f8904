//! How two arrangements compare that were measured in the same rounds.

use crate::bootstrap::difference;
use crate::{Interval, interval, mean, median};

/// A ratio over rounds: what made one round slow made both of its values slow, and cancels.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Of each round, in order.
    pub rounds: Vec<f64>,
    /// The middle one.
    pub median: f64,
    /// exp of the mean of logarithms.
    pub geometric: f64,
    /// 95 % bootstrap interval of `geometric`, over rounds; none with fewer than three.
    pub interval: Option<Interval>,
    /// The mean of the first by the mean of the second: what is right where the sum is what costs.
    pub of_means: f64,
}

impl Ratio {
    /// Of `a[k]` to `b[k]`, measured in round `k`. None where there is no round, or a value that is
    /// not above zero.
    pub fn of(a: &[f64], b: &[f64], seed: u64) -> Option<Ratio> {
        let sound = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
        if a.is_empty() || a.len() != b.len() || !sound(a) || !sound(b) {
            return None;
        }
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
        let geometric = |logs: &[f64]| mean(logs).exp();
        Some(Ratio {
            median: median(&logs).exp(),
            geometric: geometric(&logs),
            interval: interval(&logs, geometric, seed),
            of_means: mean(a) / mean(b),
            rounds: logs.into_iter().map(f64::exp).collect(),
        })
    }
}

/// The geometric mean of `a` by that of `b`, which were not measured in the same rounds, with its
/// 95 % bootstrap interval: each side is drawn by itself. None where a side is empty or has a value
/// that is not above zero; no interval below three values of a side.
pub fn unpaired(a: &[f64], b: &[f64], seed: u64) -> Option<(f64, Option<Interval>)> {
    let sound = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
    if a.is_empty() || b.is_empty() || !sound(a) || !sound(b) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let interval = difference(&a, &b, mean, seed).map(|found| Interval {
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
    fn what_slows_a_round_cancels() {
        let b = [1.0, 5.0, 0.3, 20.0];
        let a = b.map(|value| value * 1.5);
        let ratio = Ratio::of(&a, &b, 1).unwrap();
        let near = |value: f64| (value - 1.5).abs() < 1e-9;
        assert!(near(ratio.geometric) && near(ratio.median) && near(ratio.of_means));
        let found = ratio.interval.unwrap();
        assert!(near(found.low) && near(found.high));
        assert!(ratio.rounds.iter().all(|round| near(*round)));
    }

    #[test]
    fn a_planted_ratio_is_found_under_noise() {
        // Rounds vary fourfold, values by a tenth.
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
            let found = Ratio::of(&a, &b, seed).unwrap().interval.unwrap();
            assert!(found.high / found.low < 1.2);
            (found.low..=found.high).contains(&1.25)
        };
        let held = (0..100).filter(|seed| holds(*seed)).count();
        assert!((83..=99).contains(&held), "{held}");
    }

    #[test]
    fn means_and_medians_differ_where_values_have_two_modes() {
        let ratio = Ratio::of(&[1.0, 1.0, 1.0, 9.0], &[1.0; 4], 1).unwrap();
        assert_eq!((ratio.median, ratio.of_means), (1.0, 3.0));
        assert!((ratio.geometric - 9.0_f64.powf(0.25)).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_compared_is_no_ratio() {
        let none: [(&[f64], &[f64]); 4] = [
            (&[], &[]),
            (&[1.0], &[1.0, 2.0]),
            (&[0.0], &[1.0]),
            (&[1.0], &[f64::NAN]),
        ];
        for (a, b) in none {
            assert_eq!(Ratio::of(a, b, 1), None, "{a:?} {b:?}");
        }
    }

    #[test]
    fn days_apart_are_compared_with_their_noise() {
        // The truth is 1.25, values scatter by a tenth: most intervals hold it, and exclude 1.
        let found = |seed, factor: f64| {
            let mut random = Random::of(9, seed);
            let mut noise = || 1.0 + 0.2 * (random.unit() - 0.5);
            let a: Vec<f64> = (0..12).map(|_| factor * noise()).collect();
            let b: Vec<f64> = (0..9).map(|_| noise()).collect();
            let (ratio, interval) = unpaired(&a, &b, seed).unwrap();
            let interval = interval.unwrap();
            assert!(interval.low < ratio && ratio < interval.high);
            interval
        };
        let holds = |seed: &u64| (found(*seed, 1.25).low..=found(*seed, 1.25).high).contains(&1.25);
        let held = (0..50).filter(holds).count();
        assert!((40..=50).contains(&held), "{held}");
        assert!((0..50).all(|seed| found(seed, 1.25).low > 1.0));
        assert_eq!(unpaired(&[1.0, 2.0], &[1.0; 9], 1).unwrap().1, None);
        assert_eq!(unpaired(&[0.0; 3], &[1.0; 3], 1), None);
        assert_eq!(unpaired(&[], &[1.0; 3], 1), None);
    }
}
