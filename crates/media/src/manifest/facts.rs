//! Facts of tracks in the form that both kinds of manifest state them.

use crate::codec::{Cicp, Video};
use crate::index::Track;

/// Frame rates that files mean when rounded durations come near: the broadcast ones.
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

/// Frames a second as a fraction in lowest terms. Exact where all frames but the last are as
/// long; else the mean, taken as a common rate where it is within 0.1 % of one.
pub(super) fn frame_rate(track: &Track) -> (u64, u64) {
    let samples = &track.samples;
    let (count, timescale) = (u64::from(samples.len()), u64::from(track.timescale));
    let but_last = 0..samples.len().saturating_sub(1).max(1);
    let (frames, ticks) = match samples.shared_duration(but_last) {
        Some(duration) if duration > 0 => (timescale, u64::from(duration)),
        _ => (count.saturating_mul(timescale), samples.end().max(1)),
    };
    let near = |rate: &&(u64, u64)| {
        let (a, b) = (product(frames, rate.1), product(rate.0, ticks));
        a.abs_diff(b) * 1000 <= b
    };
    let exact = |rate: &&(u64, u64)| product(frames, rate.1) == product(rate.0, ticks);
    let common = COMMON_RATES.iter().find(exact).or_else(|| {
        let apart = |rate: &&(u64, u64)| {
            product(frames, rate.1).abs_diff(product(rate.0, ticks)) * 1000 / u128::from(rate.1)
        };
        COMMON_RATES.iter().filter(near).min_by_key(apart)
    });
    common.copied().unwrap_or_else(|| lowest(frames, ticks))
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// A fraction in lowest terms.
pub(super) fn lowest(a: u64, b: u64) -> (u64, u64) {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1), b / x.max(1))
}

/// Width and height in square pixels.
pub(super) fn display_size(video: &Video) -> (u32, u32) {
    let (across, down) = (u64::from(video.sar.0.max(1)), u64::from(video.sar.1.max(1)));
    let width = (u64::from(video.width) * across + down / 2) / down;
    (u32::try_from(width).unwrap_or(u32::MAX), video.height)
}

/// HLS `VIDEO-RANGE`, where the source says its transfer characteristics.
pub(super) fn video_range(color: Option<Cicp>) -> Option<&'static str> {
    match color?.transfer {
        2 => None,
        16 => Some("PQ"),
        18 => Some("HLG"),
        _ => Some("SDR"),
    }
}
