//! What measurements say, and how surely: pure arithmetic over numbers that others measured.
//!
//! [`Summary`] of one sample, [`interval`]s by bootstrap, [`Ratio`] of pairs that were measured in
//! the same rounds, a straight line's [`Fit`], the [`knee`] of a ramp; [`random`] is what seeds
//! decide everywhere.
//!
//! What is *not* here: no IO, no clock, no chance but from a seed. The same numbers always say the
//! same.

mod bootstrap;
mod fit;
mod knee;
pub mod random;
mod ratio;
mod sample;

pub use bootstrap::{Interval, interval};
pub use fit::Fit;
pub use knee::knee;
pub use random::Random;
pub use ratio::{Ratio, unpaired};
pub use sample::{Summary, mean, median, quantile};
