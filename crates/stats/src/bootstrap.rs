//! Intervals by resampling: no assumption about how values scatter.

use crate::{Random, quantile};

/// Samples drawn from the sample.
const RESAMPLES: usize = 4000;
/// Fewer values than this say nothing about their scatter.
const LEAST: usize = 3;

/// What a quantity of the sample lies in with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// 2.5 % of resamples lie below.
    pub low: f64,
    /// 2.5 % lie above.
    pub high: f64,
}

/// The percentile interval of a quantity (Efron 1979). Each value stands for one round: what was
/// measured together is to be brought down to one value first. Of few values it is somewhat too
/// narrow (the tests simulate it). None below three values.
pub fn interval(values: &[f64], quantity: impl Fn(&[f64]) -> f64, seed: u64) -> Option<Interval> {
    if values.len() < LEAST {
        return None;
    }
    let mut random = Random::new(seed);
    let mut drawn = vec![0.0; values.len()];
    let quantities: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw(values, &mut drawn, &mut random);
            quantity(&drawn)
        })
        .collect();
    Some(middle(&quantities))
}

/// The same of the difference between two samples' quantities, each drawn by itself.
pub(crate) fn difference(
    a: &[f64],
    b: &[f64],
    quantity: impl Fn(&[f64]) -> f64,
    seed: u64,
) -> Option<Interval> {
    if a.len() < LEAST || b.len() < LEAST {
        return None;
    }
    let mut random = Random::new(seed);
    let (mut of_a, mut of_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    let quantities: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw(a, &mut of_a, &mut random);
            draw(b, &mut of_b, &mut random);
            quantity(&of_a) - quantity(&of_b)
        })
        .collect();
    Some(middle(&quantities))
}

/// As many values, each any of the sample's.
fn draw(values: &[f64], drawn: &mut [f64], random: &mut Random) {
    for place in drawn {
        let number = random.below(values.len() as u64) as usize;
        *place = values.get(number).copied().unwrap_or(f64::NAN);
    }
}

fn middle(quantities: &[f64]) -> Interval {
    Interval {
        low: quantile(quantities, 0.025),
        high: quantile(quantities, 0.975),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;

    /// Around 10, with a deviation of 2: a sum of twelve evens (Irwin-Hall).
    fn normal(random: &mut Random) -> f64 {
        10.0 + 2.0 * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)
    }

    /// Of this many samples, the share whose interval holds the truth.
    fn coverage(n: usize, samples: u64, draw: fn(&mut Random) -> f64, truth: f64) -> f64 {
        let holds = |seed| {
            let mut random = Random::of(77, seed);
            let values: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
            let found = interval(&values, mean, seed).unwrap();
            (found.low..=found.high).contains(&truth)
        };
        (0..samples).filter(|seed| holds(*seed)).count() as f64 / samples as f64
    }

    #[test]
    fn intervals_cover_as_they_say() {
        let few = coverage(10, 200, normal, 10.0);
        assert!((0.85..0.97).contains(&few), "{few}");
        let many = coverage(40, 200, normal, 10.0);
        assert!((0.90..0.985).contains(&many), "{many}");
        // Lop-sided, as response times are.
        let skewed = coverage(40, 200, Random::exponential, 1.0);
        assert!((0.87..0.985).contains(&skewed), "{skewed}");
    }

    #[test]
    fn an_interval_repeats_and_needs_three_values() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!(interval(&values, mean, 5), interval(&values, mean, 5));
        assert_eq!(interval(&values[..2], mean, 5), None);
        let flat = interval(&[3.0; 9], mean, 1).unwrap();
        assert_eq!((flat.low, flat.high), (3.0, 3.0));
    }
}
