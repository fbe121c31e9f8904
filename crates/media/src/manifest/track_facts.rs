//! Properties of tracks in the form that HLS and DASH share.

use crate::codec::{CicpColor, VideoFormat};
use crate::index::Track;

/// Broadcast frame rates. Files with rounded durations usually mean one of them.
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

/// Returns frames per second as a fraction in lowest terms.
///
/// It is exact if all frames but the last have one duration. Otherwise it is the mean, or a common
/// rate within 0.1 % of it.
pub(super) fn frame_rate(track: &Track) -> (u64, u64) {
    let samples = &track.samples;
    let (count, timescale) = (u64::from(samples.len()), u64::from(track.timescale));
    let but_last = 0..samples.len().saturating_sub(1).max(1);
    let (frames, ticks) = match samples.shared_duration(but_last) {
        Some(duration) if duration > 0 => (timescale, u64::from(duration)),
        _ => (
            count.saturating_mul(timescale),
            samples.total_duration().max(1),
        ),
    };
    let is_near = |rate: &&(u64, u64)| {
        let (a, b) = (
            widening_product(frames, rate.1),
            widening_product(rate.0, ticks),
        );
        a.abs_diff(b) * 1000 <= b
    };
    let is_exact =
        |rate: &&(u64, u64)| widening_product(frames, rate.1) == widening_product(rate.0, ticks);
    let common = COMMON_RATES.iter().find(is_exact).or_else(|| {
        let distance = |rate: &&(u64, u64)| {
            widening_product(frames, rate.1).abs_diff(widening_product(rate.0, ticks)) * 1000
                / u128::from(rate.1)
        };
        COMMON_RATES.iter().filter(is_near).min_by_key(distance)
    });
    common
        .copied()
        .unwrap_or_else(|| reduce_fraction(frames, ticks))
}

fn widening_product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Reduces a fraction to lowest terms.
pub(super) fn reduce_fraction(a: u64, b: u64) -> (u64, u64) {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1), b / x.max(1))
}

/// Returns width and height in square pixels.
pub(super) fn display_size(video: &VideoFormat) -> (u32, u32) {
    let (across, down) = (u64::from(video.sar.0.max(1)), u64::from(video.sar.1.max(1)));
    let width = (u64::from(video.width) * across + down / 2) / down;
    (u32::try_from(width).unwrap_or(u32::MAX), video.height)
}

/// Returns HLS `VIDEO-RANGE`, if the source specifies its transfer characteristics.
pub(super) fn video_range(color: Option<CicpColor>) -> Option<&'static str> {
    match color?.transfer {
        2 => None,
        16 => Some("PQ"),
        18 => Some("HLG"),
        _ => Some("SDR"),
    }
}
