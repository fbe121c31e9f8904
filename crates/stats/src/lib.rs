//! Statistics of measurements.
//!
//! [`SampleSummary`] summarizes one sample, and [`median_interval`] computes confidence intervals.
//! [`PairedRatio`] compares two samples that were measured in the same rounds. [`unpaired_ratio`]
//! compares two samples that were not measured in the same rounds. [`has_enough_samples`] decides
//! whether a sample is large enough for a percentile, [`LinearFit`] fits a line, and
//! [`find_overload_point`] finds the load at which a server no longer keeps up. [`random`] provides
//! seeded random numbers.
//!
//! This crate does no I/O and reads no clock, and all random numbers are derived from a seed. Equal
//! input therefore gives equal results.

mod fit;
mod median_interval;
mod overload_point;
mod paired_ratio;
mod percentile_sample_minimum;
pub mod random;
mod sample_summary;
#[cfg(test)]
mod simulation;
mod unpaired_ratio;

pub use fit::LinearFit;
pub use median_interval::{ConfidenceInterval, median_interval};
pub use overload_point::find_overload_point;
pub use paired_ratio::PairedRatio;
pub use percentile_sample_minimum::has_enough_samples;
pub use random::Random;
pub use sample_summary::{SampleSummary, mean, median, quantile};
pub use unpaired_ratio::unpaired_ratio;
