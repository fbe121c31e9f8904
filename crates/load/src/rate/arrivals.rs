//! When each request is due: pure, from a profile and a seed.

use super::profile::{Piece, Profile};
use crate::random::Random;

/// How arrivals lie within the profile's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// Evenly.
    #[default]
    Even,
    /// As independent users come: a Poisson process of that rate.
    Poisson,
}

/// The moments at which requests are due, in seconds of the run, in order.
///
/// The `n`th is where the profile's integral reaches `n` (even), or the sum of `n` exponentials of
/// mean 1 (Poisson: the time-rescaling theorem).
#[derive(Debug, Clone)]
pub struct Arrivals {
    pieces: std::vec::IntoIter<Piece>,
    piece: Option<Piece>,
    /// Requests that are due before this piece.
    before: f64,
    /// Where the integral has to get to next.
    goal: f64,
    spacing: Option<Random>,
    count: u64,
}

impl Arrivals {
    /// The arrivals of a profile; none for [`Profile::Max`].
    pub fn new(profile: &Profile, spacing: Spacing, seed: u64) -> Arrivals {
        let pieces = match profile {
            Profile::Max { .. } => Vec::new(),
            Profile::Given { pieces, .. } => pieces.clone(),
        };
        let mut random = match spacing {
            Spacing::Even => None,
            Spacing::Poisson => Some(Random::of(seed, u64::MAX)),
        };
        let goal = random.as_mut().map_or(0.0, Random::exponential);
        let mut pieces = pieces.into_iter();
        Arrivals {
            piece: pieces.next(),
            pieces,
            before: 0.0,
            goal,
            spacing: random,
            count: 0,
        }
    }
}

impl Iterator for Arrivals {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let piece = self.piece?;
            let all = piece.count_until(piece.end_s);
            // The end of a piece belongs to the next one. Rounding is a millionth of a request.
            if self.goal - self.before < all - 1e-6 {
                let due = piece.time_of(self.goal - self.before);
                self.count += 1;
                self.goal = match &mut self.spacing {
                    None => self.count as f64,
                    Some(random) => self.goal + random.exponential(),
                };
                return Some(due);
            }
            self.before += all;
            self.piece = self.pieces.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(text: &str, duration_s: f64, spacing: Spacing) -> Vec<f64> {
        let profile = Profile::parse(text, Some(duration_s), |_| unreachable!()).unwrap();
        Arrivals::new(&profile, spacing, 1).collect()
    }

    #[test]
    fn even_arrivals_are_where_the_integral_says() {
        let constant = arrivals("100", 100.0, Spacing::Even);
        assert_eq!(constant.len(), 10_000);
        for (n, due) in constant.iter().enumerate() {
            assert!((due - n as f64 / 100.0).abs() < 1e-9);
        }
        // t = (−r0 + √(r0² + 2·slope·n)) / slope
        let ramp = arrivals("ramp:100..5000", 10.0, Spacing::Even);
        assert_eq!(ramp.len(), 25_500);
        for (n, due) in ramp.iter().enumerate() {
            let (from, slope) = (100f64, 490.0);
            let expected = (-from + (from * from + 2.0 * slope * n as f64).sqrt()) / slope;
            assert!((due - expected).abs() < 1e-9, "{n}");
        }
        let steps = arrivals("steps:50+50/10s..600", 120.0, Spacing::Even);
        assert_eq!(steps.len(), 39_000);
        let second = steps
            .iter()
            .filter(|due| (10.0..20.0).contains(*due))
            .count();
        assert_eq!(second, 1000);
        let zero = arrivals("ramp:0..10", 10.0, Spacing::Even);
        assert_eq!((zero.len(), zero[0]), (50, 0.0));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_scatter() {
        let all = arrivals("1000", 100.0, Spacing::Poisson);
        let mut counts = [0f64; 1000];
        for due in &all {
            counts[(due * 10.0) as usize] += 1.0;
        }
        let mean = all.len() as f64 / 1000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!((mean - 100.0).abs() < 2.0, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.2, "{variance}");
        assert!(all.is_sorted());
        let other = Arrivals::new(
            &Profile::parse("1000", Some(100.0), |_| unreachable!()).unwrap(),
            Spacing::Poisson,
            1,
        );
        assert_eq!(
            other.collect::<Vec<_>>(),
            all,
            "the same seed, the same arrivals"
        );
    }
}
