//! Statistics of measurements: pure arithmetic.
//!
//! [`SampleSummary`] summarizes one sample, [`bootstrap_interval`] computes confidence intervals,
//! [`PairedRatio`] compares pairs of the same rounds, [`LinearFit`] fits a line, and [`find_knee`]
//! finds the knee of a ramp. [`random`] provides seeded random numbers.
//!
//! This crate has no IO, no clock, and no randomness except from a seed: equal input gives equal
//! results.

mod bootstrap;
mod fit;
mod knee;
pub mod random;
mod ratio;
mod sample;

pub use bootstrap::{ConfidenceInterval, bootstrap_interval};
pub use fit::LinearFit;
pub use knee::find_knee;
pub use random::Random;
pub use ratio::{PairedRatio, unpaired_ratio};
pub use sample::{SampleSummary, mean, median, quantile};
