//! Bootstrap intervals, which assume no distribution.

use crate::{Random, quantile};

/// Number of resamples.
const RESAMPLES: usize = 4000;
/// Minimum number of values for an interval.
const VALUES_MIN: usize = 3;

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// 2.5 % of the resamples are below.
    pub low: f64,
    /// 2.5 % of the resamples are above.
    pub high: f64,
}

/// Returns the percentile interval of a statistic (Efron 1979); `None` below three values. Values
/// must be independent: reduce the measurements of one round to one value first. The interval of
/// few values is slightly too narrow (the tests simulate it).
pub fn bootstrap_interval(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    seed: u64,
) -> Option<ConfidenceInterval> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut random = Random::new(seed);
    let mut drawn = vec![0.0; values.len()];
    let resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw_resample(values, &mut drawn, &mut random);
            statistic(&drawn)
        })
        .collect();
    Some(percentile_interval(&resampled))
}

/// Returns the interval of the difference of two samples, resampled independently.
pub(crate) fn difference_interval(
    a: &[f64],
    b: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    seed: u64,
) -> Option<ConfidenceInterval> {
    if a.len() < VALUES_MIN || b.len() < VALUES_MIN {
        return None;
    }
    let mut random = Random::new(seed);
    let (mut of_a, mut of_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    let resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw_resample(a, &mut of_a, &mut random);
            draw_resample(b, &mut of_b, &mut random);
            statistic(&of_a) - statistic(&of_b)
        })
        .collect();
    Some(percentile_interval(&resampled))
}

/// Draws with replacement.
fn draw_resample(values: &[f64], drawn: &mut [f64], random: &mut Random) {
    for place in drawn {
        let number = random.below(values.len() as u64) as usize;
        *place = values.get(number).copied().unwrap_or(f64::NAN);
    }
}

fn percentile_interval(resampled: &[f64]) -> ConfidenceInterval {
    ConfidenceInterval {
        low: quantile(resampled, 0.025),
        high: quantile(resampled, 0.975),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;

    /// Mean 10, standard deviation 2: a sum of twelve uniform numbers (Irwin-Hall).
    fn draw_normal(random: &mut Random) -> f64 {
        10.0 + 2.0 * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)
    }

    /// Returns the share of simulated samples whose interval contains the truth.
    fn measure_coverage(n: usize, samples: u64, draw: fn(&mut Random) -> f64, truth: f64) -> f64 {
        let holds = |seed| {
            let mut random = Random::of(77, seed);
            let values: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
            let found = bootstrap_interval(&values, mean, seed).unwrap();
            (found.low..=found.high).contains(&truth)
        };
        (0..samples).filter(|seed| holds(*seed)).count() as f64 / samples as f64
    }

    #[test]
    fn intervals_contain_the_truth_as_often_as_declared() {
        let few = measure_coverage(10, 200, draw_normal, 10.0);
        assert!((0.85..0.97).contains(&few), "{few}");
        let many = measure_coverage(40, 200, draw_normal, 10.0);
        assert!((0.90..0.985).contains(&many), "{many}");
        // Skewed, as response times are.
        let skewed = measure_coverage(40, 200, Random::exponential, 1.0);
        assert!((0.87..0.985).contains(&skewed), "{skewed}");
    }

    #[test]
    fn an_interval_repeats_and_needs_three_values() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!(
            bootstrap_interval(&values, mean, 5),
            bootstrap_interval(&values, mean, 5)
        );
        assert_eq!(bootstrap_interval(&values[..2], mean, 5), None);
        let flat = bootstrap_interval(&[3.0; 9], mean, 1).unwrap();
        assert_eq!((flat.low, flat.high), (3.0, 3.0));
    }
}
