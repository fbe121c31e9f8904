//! The number of samples that a percentile needs.

/// Minimum number of samples on each side of a percentile. With fewer samples, the percentile
/// depends mostly on chance.
const SAMPLES_BEYOND_MIN: f64 = 10.0;

/// Returns whether `count` samples are enough for the percentile at `share` (0 to 1). At least ten
/// samples must be below the percentile, and at least ten above it. For example, the 99th
/// percentile needs 1000 samples.
pub fn has_enough_samples(count: u64, share: f64) -> bool {
    let beyond = share.min(1.0 - share) * count as f64;
    // The tolerance is needed because (1 − 0.9) × 100 is slightly less than 10 in floating-point
    // arithmetic.
    beyond + 1e-6 >= SAMPLES_BEYOND_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        for (share, needed) in [
            (0.5, 20),
            (0.9, 100),
            (0.1, 100),
            (0.99, 1000),
            (0.999, 10_000),
        ] {
            assert!(has_enough_samples(needed, share), "{share}");
            assert!(!has_enough_samples(needed - 1, share), "{share}");
        }
        assert!(!has_enough_samples(u64::MAX, 1.0));
    }
}
