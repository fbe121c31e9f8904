//! What a seed decides: losses and jitter, by the packet's number.

use super::Loss;
use stats::Random;

/// A stream of numbers, and the state that bursts need.
#[derive(Debug)]
pub(super) struct Chance {
    random: Random,
    bad: bool,
}

impl Chance {
    /// The `number`th stream of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Chance {
        Chance {
            random: Random::of(seed, number),
            bad: false,
        }
    }

    /// In [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.random.unit()
    }

    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self, loss: &Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(share) => self.unit() < *share,
            Loss::GilbertElliott {
                to_bad,
                to_good,
                good,
                bad,
            } => {
                let turns = if self.bad { *to_good } else { *to_bad };
                self.bad ^= self.unit() < turns;
                let share = if self.bad { *bad } else { *good };
                // Drawn in either state, so that the numbers of later packets do not depend on it.
                self.unit() < share
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 400_000;

    fn fate(loss: Loss, seed: u64) -> Vec<bool> {
        let mut chance = Chance::new(seed, 0);
        (0..PACKETS).map(|_| chance.loses(&loss)).collect()
    }

    fn share(fate: &[bool]) -> f64 {
        fate.iter().filter(|lost| **lost).count() as f64 / fate.len() as f64
    }

    #[test]
    fn independent_losses_keep_their_share_and_come_alone() {
        let fate = fate(Loss::Independent(0.02), 1);
        assert!((share(&fate) - 0.02).abs() < 0.001, "{}", share(&fate));
        let after: Vec<bool> = fate.windows(2).filter(|w| w[0]).map(|w| w[1]).collect();
        assert!((share(&after) - 0.02).abs() < 0.008, "{}", share(&after));
    }

    #[test]
    fn bursts_keep_their_mean_share_and_length() {
        let loss = Loss::bursts(0.02, 4.0);
        let fate = fate(loss, 1);
        // Eight standard errors: bursts make the mean vary more than single losses do.
        assert!((share(&fate) - 0.02).abs() < 0.005, "{}", share(&fate));
        let bursts = fate.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let length = share(&fate) * PACKETS as f64 / bursts;
        assert!((length - 4.0).abs() < 0.4, "{length}");
    }

    #[test]
    fn a_full_model_loses_what_its_states_say() {
        // Half the time in either state: (1 % + 21 %) / 2.
        let loss = Loss::GilbertElliott {
            to_bad: 0.1,
            to_good: 0.1,
            good: 0.01,
            bad: 0.21,
        };
        let share = share(&fate(loss, 3));
        assert!((share - 0.11).abs() < 0.01, "{share}");
    }

    #[test]
    fn streams_repeat_by_seed_and_differ_by_number() {
        let draw = |seed, number| {
            let mut chance = Chance::new(seed, number);
            [(); 8].map(|()| chance.unit())
        };
        assert_eq!(draw(5, 0), draw(5, 0));
        assert_ne!(draw(5, 0), draw(5, 1));
        assert_ne!(draw(5, 0), draw(6, 0));
    }
}
