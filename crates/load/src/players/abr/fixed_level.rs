//! Rules that ignore the network, and choose a fixed level or random levels.

use super::{AbrRule, LevelDecision, PlayerView};

/// A rule that always chooses the same level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FixedLevel {
    /// The highest level.
    Highest,
    /// The lowest level.
    Lowest,
    /// The level nearest to this bitrate, in bits per second.
    Given(f64),
}

impl FixedLevel {
    /// Returns the index of the level in an ascending list of bitrates.
    pub fn level(self, bitrates: &[f64]) -> usize {
        match self {
            FixedLevel::Highest => bitrates.len().saturating_sub(1),
            FixedLevel::Lowest => 0,
            FixedLevel::Given(bps) => nearest_level(bitrates, bps),
        }
    }
}

impl AbrRule for FixedLevel {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        self.level(view.bitrates).into()
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}

/// Returns the level with the nearest bitrate.
fn nearest_level(bitrates: &[f64], bps: f64) -> usize {
    let distances = bitrates.iter().map(|bitrate| (bitrate - bps).abs());
    let found = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    found.map_or(0, |(level, _)| level)
}

/// A rule that chooses a random level for each segment. The seed determines the sequence of levels.
#[derive(Debug)]
pub struct RandomLevel(crate::random::Random);

impl RandomLevel {
    /// Creates the rule from a seed.
    pub fn new(seed: u64) -> RandomLevel {
        RandomLevel(crate::random::Random::new(seed))
    }
}

impl AbrRule for RandomLevel {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        (self.0.next_below(view.bitrates.len() as u64) as usize).into()
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}
