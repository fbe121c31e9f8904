//! The frame rate of a video track.

use crate::index::Track;

/// Broadcast frame rates. If the frame durations in a file are rounded, the real frame rate is
/// usually in this list.
const COMMON_RATES: [(u64, u64); 12] = [
    (24_000, 1001),
    (24, 1),
    (25, 1),
    (30_000, 1001),
    (30, 1),
    (48, 1),
    (50, 1),
    (60_000, 1001),
    (60, 1),
    (100, 1),
    (120_000, 1001),
    (120, 1),
];

/// Maximum number of frames that are examined. This is more than an hour at 60 frames per second.
const FRAMES_MAX: u32 = 1 << 18;

/// Maximum frame rate, in frames per second. Intervals between frames that are too short for this
/// rate are ignored, because they come from hidden pictures at the start or from wrong timestamps.
const RATE_MAX: i64 = 500;

/// The shortest intervals between frames are ignored as outliers. Their share of all intervals is
/// one divided by this number. Splices and repaired timestamps leave single intervals that are much
/// too short.
const INTERVALS_PER_OUTLIER: usize = 256;

/// Intervals belong to the same frame rate if they are longer than the shortest interval by at most
/// a fraction of 1/32. Cameras and coarse timescales cause such variations.
const JITTER_DIVISOR: i64 = 32;

/// Returns the maximum frame rate in frames per second, as a fraction in lowest terms (RFC 8216,
/// 4.3.4.2: "the maximum frame rate for all the video in the Variant Stream").
///
/// If all frames except the last have the same duration, this duration determines the rate.
/// Otherwise, the shortest intervals between presented frames determine the rate. A common rate
/// within 0.1 % replaces the result.
pub(super) fn track_max_frame_rate(track: &Track) -> (u64, u64) {
    let samples = &track.samples;
    let timescale = u64::from(track.timescale);
    let but_last = 0..samples.len().saturating_sub(1).max(1);
    let (frames, ticks) = match samples.shared_duration(but_last) {
        Some(duration) if duration > 0 => (timescale, u64::from(duration)),
        _ => shortest_interval_frame_rate(track),
    };
    nearest_common_rate(frames, ticks).unwrap_or_else(|| reduce_fraction(frames, ticks))
}

/// Returns the rate of the shortest intervals between frames in presentation order.
fn shortest_interval_frame_rate(track: &Track) -> (u64, u64) {
    let samples = &track.samples;
    let frames = samples.iter_range(0..samples.len().min(FRAMES_MAX));
    let mut times: Vec<i64> = frames
        .map(|s| s.dts as i64 + i64::from(s.composition_offset))
        .collect();
    times.sort_unstable();
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = (i64::from(track.timescale) / RATE_MAX).max(1);
    let mut intervals: Vec<i64> = steps.filter(|ticks| *ticks >= shortest).collect();
    intervals.sort_unstable();
    let fastest = &intervals[intervals.len() / INTERVALS_PER_OUTLIER..];
    let Some(shortest) = fastest.first() else {
        let ticks = samples.total_duration().max(1);
        let timescale = u64::from(track.timescale);
        return (u64::from(samples.len()).saturating_mul(timescale), ticks);
    };
    let limit = shortest + (shortest / JITTER_DIVISOR).max(1);
    let near = &fastest[..fastest.partition_point(|ticks| *ticks <= limit)];
    let ticks: i64 = near.iter().sum();
    (
        (near.len() as u64).saturating_mul(track.timescale.into()),
        ticks.unsigned_abs(),
    )
}

/// Returns the common rate that equals `frames / ticks`. If no common rate is equal, returns the
/// nearest common rate within 0.1 %.
fn nearest_common_rate(frames: u64, ticks: u64) -> Option<(u64, u64)> {
    let products = |rate: &(u64, u64)| {
        (
            widening_product(frames, rate.1),
            widening_product(rate.0, ticks),
        )
    };
    let is_near = |rate: &&(u64, u64)| {
        let (a, b) = products(rate);
        a.abs_diff(b) * 1000 <= b
    };
    let is_exact = |rate: &&(u64, u64)| {
        let (a, b) = products(rate);
        a == b
    };
    let distance = |rate: &&(u64, u64)| {
        let (a, b) = products(rate);
        a.abs_diff(b) * 1000 / u128::from(rate.1)
    };
    let exact = COMMON_RATES.iter().find(is_exact);
    let common = exact.or_else(|| COMMON_RATES.iter().filter(is_near).min_by_key(distance));
    common.copied()
}

fn widening_product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Reduces a fraction to lowest terms.
pub(crate) fn reduce_fraction(a: u64, b: u64) -> (u64, u64) {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1), b / x.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_avc_test_codec, build_track};

    fn rate_of(timescale: u32, durations: &[u32]) -> (u64, u64) {
        let row = |(n, ticks): (usize, &u32)| (*ticks, 0, 10, n == 0);
        let rows: Vec<_> = durations.iter().enumerate().map(row).collect();
        track_max_frame_rate(&build_track(
            build_avc_test_codec(640, 360),
            timescale,
            0,
            &rows,
        ))
    }

    #[test]
    fn a_varying_frame_rate_is_listed_with_its_maximum() {
        let half_dropped = [3000, 3000, 6000, 3000, 6000].repeat(60);
        assert_eq!(rate_of(90_000, &half_dropped), (30, 1));
        let slow_then_fast = [[3750; 240], [1500; 240]].concat();
        assert_eq!(rate_of(90_000, &slow_then_fast), (60, 1));
    }

    #[test]
    fn jitter_and_single_short_intervals_do_not_raise_the_frame_rate() {
        let camera = [19, 20, 21, 20, 20].repeat(60);
        let (frames, ticks) = rate_of(600, &camera);
        assert!((29.9..30.8).contains(&(frames as f64 / ticks as f64)));
        let mut spliced = vec![3000; 600];
        spliced[300] = 1;
        assert_eq!(rate_of(90_000, &spliced), (30, 1));
    }

    #[test]
    fn reordered_pictures_are_measured_in_presentation_order() {
        // The decode durations vary, but the intervals between presentation times are equal.
        let rows = [
            (10, 1000, 9, true),
            (1990, 2990, 9, false),
            (1000, 0, 9, false),
            (1000, 1000, 9, false),
        ];
        let track = build_track(build_avc_test_codec(640, 360), 25_000, 0, &rows);
        assert_eq!(track_max_frame_rate(&track), (25, 1));
    }
}
