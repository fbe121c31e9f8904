//! Rules that look at nothing: one level, or any.

use super::{Abr, Choice, View};

/// Always the same level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fixed {
    /// The highest.
    Highest,
    /// The lowest.
    Lowest,
    /// The one whose bitrate is nearest to so many bits a second.
    Given(f64),
}

impl Fixed {
    /// The level, of a ladder in ascending order.
    pub fn level(self, bitrates: &[f64]) -> usize {
        match self {
            Fixed::Highest => bitrates.len().saturating_sub(1),
            Fixed::Lowest => 0,
            Fixed::Given(bps) => nearest(bitrates, bps),
        }
    }
}

impl Abr for Fixed {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        self.level(view.bitrates).into()
    }
}

/// The level whose bitrate is nearest.
fn nearest(bitrates: &[f64], bps: f64) -> usize {
    let distances = bitrates.iter().map(|bitrate| (bitrate - bps).abs());
    let found = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    found.map_or(0, |(level, _)| level)
}

/// Any level, anew for each segment; the same seed chooses the same.
#[derive(Debug)]
pub struct Random(crate::random::Random);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(crate::random::Random::new(seed))
    }
}

impl Abr for Random {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        (self.0.below(view.bitrates.len() as u64) as usize).into()
    }
}
