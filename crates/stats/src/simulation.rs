//! Draws samples from distributions with a known median, for tests of confidence intervals.

use crate::Random;

/// Number of simulated samples per case. The tests measure the share of confidence intervals that
/// contain the true value. This share is about 95 %. With this many samples, the standard error of
/// the share is 0.5 percentage points.
const SAMPLES: u64 = 2000;

/// A function that draws values from a distribution, and the median of the distribution.
type KnownDistribution = (fn(&mut Random) -> f64, f64);

/// The normal distribution with mean 10 and standard deviation 2.
pub(crate) fn known_normal_distribution() -> KnownDistribution {
    (|random| 10.0 + 2.0 * draw_standard_normal(random), 10.0)
}

/// A lognormal distribution. It is skewed, as response times are.
pub(crate) fn lognormal_distribution() -> KnownDistribution {
    (|random| draw_standard_normal(random).exp(), 1.0)
}

/// A distribution with two modes, as response times over a lossy link have. 70 % of the values are
/// near 1, and 30 % are near 5.
pub(crate) fn bimodal_distribution() -> KnownDistribution {
    let draw = |random: &mut Random| {
        let mode = if random.next_unit() < 0.7 { 1.0 } else { 5.0 };
        mode + 0.1 * draw_standard_normal(random)
    };
    // 70 % of the values belong to the first mode. The overall median is therefore the 5/7 quantile
    // (0.5 / 0.7) of this mode. The 5/7 quantile of the standard normal distribution is
    // 0.565_948_8.
    (draw, 1.0 + 0.1 * 0.565_948_8)
}

/// Draws from the standard normal distribution (Box and Muller 1958).
pub(crate) fn draw_standard_normal(random: &mut Random) -> f64 {
    let angle = std::f64::consts::TAU * random.next_unit();
    (2.0 * random.exponential()).sqrt() * angle.cos()
}

/// Returns the share of simulated samples for which `holds` returns `true`.
pub(crate) fn measure_coverage(holds: impl Fn(&mut Random) -> bool) -> f64 {
    let held = (0..SAMPLES).filter(|seed| holds(&mut Random::derive_stream(77, *seed)));
    held.count() as f64 / SAMPLES as f64
}
