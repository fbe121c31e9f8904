//! Computes the times at which requests are due, from a rate profile and a seed.

use super::rate_profile::{RateProfile, RateRamp};
use crate::random::Random;
use std::sync::Arc;

/// The distribution of requests over time, at the rate of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArrivalSpacing {
    /// The requests are evenly spaced.
    #[default]
    Even,
    /// The requests are a Poisson process, as if they came from independent users.
    Poisson,
}

/// An iterator over due times, in seconds since the start of the run. With even spacing, request
/// `n` is due when the integral of the profile's rate reaches `n`. With Poisson spacing, the
/// integral grows between two requests by an exponentially distributed random number with mean 1
/// (time-rescaling theorem). Recorded requests are due at the times that the profile lists.
#[derive(Debug, Clone)]
pub struct ArrivalTimes {
    pieces: std::vec::IntoIter<RateRamp>,
    piece: Option<RateRamp>,
    /// Number of requests due before the current ramp.
    before: f64,
    /// The next request is due when the integral of the rate reaches this value.
    goal: f64,
    spacing: Option<Random>,
    count: u64,
    /// Due times of recorded requests; empty for a profile that defines a rate.
    recorded: Arc<[f64]>,
}

impl ArrivalTimes {
    /// Creates the iterator for a profile. For [`RateProfile::Max`], the iterator is empty.
    pub fn new(profile: &RateProfile, spacing: ArrivalSpacing, seed: u64) -> ArrivalTimes {
        let pieces = match profile {
            RateProfile::Max { .. } | RateProfile::Replay { .. } => Vec::new(),
            RateProfile::Given { pieces, .. } => pieces.clone(),
        };
        let mut random = match spacing {
            ArrivalSpacing::Even => None,
            ArrivalSpacing::Poisson => Some(Random::derive_stream(seed, u64::MAX)),
        };
        let goal = random.as_mut().map_or(0.0, Random::exponential);
        let mut pieces = pieces.into_iter();
        ArrivalTimes {
            piece: pieces.next(),
            pieces,
            before: 0.0,
            goal,
            spacing: random,
            count: 0,
            recorded: match profile {
                RateProfile::Replay { due_s, .. } => due_s.clone(),
                _ => Arc::default(),
            },
        }
    }
}

impl Iterator for ArrivalTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        if let Some(due_s) = self.recorded.get(self.count as usize) {
            self.count += 1;
            return Some(*due_s);
        }
        loop {
            let piece = self.piece?;
            let all = piece.count_until(piece.end_s);
            // A request that is due at the end of a ramp belongs to the next ramp. The margin of a
            // millionth of a request absorbs rounding errors.
            if self.goal - self.before < all - 1e-6 {
                let due = piece.due_time_of(self.goal - self.before);
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

    fn arrival_times(text: &str, duration_s: f64, spacing: ArrivalSpacing) -> Vec<f64> {
        let profile =
            RateProfile::parse_profile(text, Some(duration_s), |_| unreachable!()).unwrap();
        ArrivalTimes::new(&profile, spacing, 1).collect()
    }

    #[test]
    fn even_arrivals_follow_the_integral_of_the_rate() {
        let constant = arrival_times("100", 100.0, ArrivalSpacing::Even);
        assert_eq!(constant.len(), 10_000);
        for (n, due) in constant.iter().enumerate() {
            assert!((due - n as f64 / 100.0).abs() < 1e-9);
        }
        // Request n of the ramp is due at t = (−r0 + √(r0² + 2·slope·n)) / slope, where r0 is the
        // rate at the start of the ramp.
        let ramp = arrival_times("ramp:100..5000", 10.0, ArrivalSpacing::Even);
        assert_eq!(ramp.len(), 25_500);
        for (n, due) in ramp.iter().enumerate() {
            let (from, slope) = (100f64, 490.0);
            let expected = (-from + (from * from + 2.0 * slope * n as f64).sqrt()) / slope;
            assert!((due - expected).abs() < 1e-9, "{n}");
        }
        let steps = arrival_times("steps:50+50/10s..600", 120.0, ArrivalSpacing::Even);
        assert_eq!(steps.len(), 39_000);
        let second = steps
            .iter()
            .filter(|due| (10.0..20.0).contains(*due))
            .count();
        assert_eq!(second, 1000);
        let zero = arrival_times("ramp:0..10", 10.0, ArrivalSpacing::Even);
        assert_eq!((zero.len(), zero[0]), (50, 0.0));
    }

    #[test]
    fn poisson_arrivals_have_the_expected_mean_and_variance() {
        let all = arrival_times("1000", 100.0, ArrivalSpacing::Poisson);
        let mut counts = [0f64; 1000];
        for due in &all {
            counts[(due * 10.0) as usize] += 1.0;
        }
        let mean = all.len() as f64 / 1000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!((mean - 100.0).abs() < 2.0, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.2, "{variance}");
        assert!(all.is_sorted());
        let other = ArrivalTimes::new(
            &RateProfile::parse_profile("1000", Some(100.0), |_| unreachable!()).unwrap(),
            ArrivalSpacing::Poisson,
            1,
        );
        assert_eq!(
            other.collect::<Vec<_>>(),
            all,
            "the same seed, the same arrivals"
        );
    }
}
