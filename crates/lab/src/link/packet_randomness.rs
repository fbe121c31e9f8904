//! Random decisions about each packet's loss and jitter. The seed determines all decisions.

use super::LossModel;
use stats::Random;

/// A stream of random numbers, and the state of the burst loss model.
#[derive(Debug)]
pub(super) struct PacketRandomness {
    random: Random,
    bad: bool,
}

impl PacketRandomness {
    /// Creates the stream with this number. The seed and the number determine the stream.
    pub(super) fn new(seed: u64, number: u64) -> PacketRandomness {
        PacketRandomness {
            random: Random::derive_stream(seed, number),
            bad: false,
        }
    }

    /// Returns the next random number, which is uniformly distributed in [0, 1).
    pub(super) fn next_unit(&mut self) -> f64 {
        self.random.next_unit()
    }

    /// Decides whether the next packet is lost.
    pub(super) fn loses_packet(&mut self, loss: &LossModel) -> bool {
        match loss {
            LossModel::None => false,
            LossModel::Independent(share) => self.next_unit() < *share,
            LossModel::GilbertElliott {
                to_bad,
                to_good,
                good,
                bad,
            } => {
                let turns = if self.bad { *to_good } else { *to_bad };
                self.bad ^= self.next_unit() < turns;
                let share = if self.bad { *bad } else { *good };
                // This random number is drawn in both states, so that later random numbers do not
                // depend on the state.
                self.next_unit() < share
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 400_000;

    fn draw_losses(loss: LossModel, seed: u64) -> Vec<bool> {
        let mut chance = PacketRandomness::new(seed, 0);
        (0..PACKETS).map(|_| chance.loses_packet(&loss)).collect()
    }

    fn lost_share(fate: &[bool]) -> f64 {
        fate.iter().filter(|lost| **lost).count() as f64 / fate.len() as f64
    }

    #[test]
    fn independent_losses_have_the_requested_share_and_no_bursts() {
        let fate = draw_losses(LossModel::Independent(0.02), 1);
        assert!(
            (lost_share(&fate) - 0.02).abs() < 0.001,
            "{}",
            lost_share(&fate)
        );
        let after: Vec<bool> = fate.windows(2).filter(|w| w[0]).map(|w| w[1]).collect();
        assert!(
            (lost_share(&after) - 0.02).abs() < 0.008,
            "{}",
            lost_share(&after)
        );
    }

    #[test]
    fn bursts_have_the_requested_mean_share_and_length() {
        let loss = LossModel::from_bursts(0.02, 4.0);
        let fate = draw_losses(loss, 1);
        // The tolerance is about eight standard errors. Bursts make the standard error larger than
        // independent losses would.
        assert!(
            (lost_share(&fate) - 0.02).abs() < 0.005,
            "{}",
            lost_share(&fate)
        );
        let bursts = fate.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let length = lost_share(&fate) * PACKETS as f64 / bursts;
        assert!((length - 4.0).abs() < 0.4, "{length}");
    }

    #[test]
    fn a_two_state_model_loses_the_share_of_its_states() {
        // Half of the packets are sent in each state, so that the expected loss is (1 % + 21 %) / 2
        // = 11 %.
        let loss = LossModel::GilbertElliott {
            to_bad: 0.1,
            to_good: 0.1,
            good: 0.01,
            bad: 0.21,
        };
        let share = lost_share(&draw_losses(loss, 3));
        assert!((share - 0.11).abs() < 0.01, "{share}");
    }

    #[test]
    fn streams_repeat_by_seed_and_differ_by_number() {
        let draw = |seed, number| {
            let mut chance = PacketRandomness::new(seed, number);
            [(); 8].map(|()| chance.next_unit())
        };
        assert_eq!(draw(5, 0), draw(5, 0));
        assert_ne!(draw(5, 0), draw(5, 1));
        assert_ne!(draw(5, 0), draw(6, 0));
    }
}
