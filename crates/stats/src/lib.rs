//! Statistics of measurements.
//!
//! [`SampleSummary`] summarizes one sample, and [`median_interval`] computes confidence intervals.
//! [`PairedRatio`] compares two samples that were measured in the same rounds. [`unpaired_ratio`]
//! compares two samples that were not measured in the same rounds. [`has_enough_samples`] decides
//! whether a sample is large enough for a percentile, [`LinearFit`] fits a line, and [`find_knee`]
//! finds the knee of a ramp. [`random`] provides seeded random numbers.
//!
//! This crate does no I/O and reads no clock, and all random numbers are derived from a seed. Equal
//! input therefore gives equal results.

mod fit;
mod knee;
mod median_interval;
mod percentile_samples;
pub mod random;
mod ratio;
mod sample;
#[cfg(test)]
mod simulation;
mod unpaired_ratio;

pub use fit::LinearFit;
pub use knee::find_knee;
pub use median_interval::{ConfidenceInterval, median_interval};
pub use percentile_samples::has_enough_samples;
pub use random::Random;
pub use ratio::PairedRatio;
pub use sample::{SampleSummary, mean, median, quantile};
pub use unpaired_ratio::unpaired_ratio;
