//! What a rendition costs to stream: measured, never declared.

use super::{Presentation, Rendition};

/// Bits a second, over the segments as served (headers included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// The largest over any run of segments that lasts between 0.5 and 1.5 target durations
    /// (the "peak segment bit rate" of RFC 8216, 4.3.4.2).
    pub peak: u64,
    /// All bytes over all time.
    pub average: u64,
}

impl Presentation {
    /// Bandwidth of a rendition whose segment `n` has `len(n)` bytes.
    pub(crate) fn bandwidth_of(
        &self,
        rendition: &Rendition,
        len: impl Fn(usize) -> u64,
    ) -> Bandwidth {
        let ticks = |n| self.segment_ticks(rendition, n);
        let segments = (0..rendition.segments()).map(|n| (ticks(n), len(n)));
        self.bandwidth_over(rendition, segments.collect())
    }

    /// Bandwidth of a video rendition's key frames, as trick play fetches them.
    pub(crate) fn keys_bandwidth(&self, rendition: &Rendition) -> Bandwidth {
        let mut segments: Vec<(u64, u64)> = Vec::new();
        let mut last = 0;
        for key in self.keys(rendition).chain([u32::MAX]) {
            let time = self.served_time(rendition, key);
            if let Some(before) = segments.last_mut() {
                before.0 = time - last;
            }
            last = time;
            if key < u32::MAX {
                segments.push((0, self.key_segment_len(rendition, key)));
            }
        }
        self.bandwidth_over(rendition, segments)
    }

    fn bandwidth_over(&self, rendition: &Rendition, segments: Vec<(u64, u64)>) -> Bandwidth {
        let timescale = self.track(rendition).timescale;
        let target = u64::from(self.target_duration) * u64::from(timescale);
        measure(&segments, target, timescale)
    }
}

/// How many runs are looked at from each segment on. Ordinary segments last about a target
/// duration, so one or two fit; only odd titles with very short ones among long ones have more.
const RUNS: usize = 16;

/// Measures segments given as (ticks, bytes); `target` is the target duration in ticks.
fn measure(segments: &[(u64, u64)], target: u64, timescale: u32) -> Bandwidth {
    let sum = |segments: &[(u64, u64)]| {
        segments
            .iter()
            .fold((0, 0), |(ticks, bytes): (u64, u64), segment| {
                (ticks + segment.0, bytes + segment.1)
            })
    };
    let average = rate(sum(segments), timescale);
    let mut peak = (1, 0);
    let (mut end, mut run) = (0, (0u64, 0u64));
    for (first, segment) in segments.iter().enumerate() {
        while end < segments.len() && run.0 * 2 < target {
            run = (run.0 + segments[end].0, run.1 + segments[end].1);
            end += 1;
        }
        let mut longer = run;
        for next in segments[end.max(first)..]
            .iter()
            .map(Some)
            .chain([None])
            .take(RUNS)
        {
            if longer.0 * 2 > target * 3 {
                break;
            }
            if longer.0 * 2 >= target {
                peak = larger(peak, longer);
            }
            longer = next.map_or(longer, |next| (longer.0 + next.0, longer.1 + next.1));
        }
        run = (run.0 - segment.0, run.1 - segment.1);
    }
    Bandwidth {
        peak: rate(peak, timescale).max(average),
        average,
    }
}

/// The run with more bytes a tick. Exact, and without a division.
fn larger(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let product = |(_, bytes): (u64, u64), (ticks, _): (u64, u64)| {
        u128::from(bytes) * u128::from(ticks.max(1))
    };
    if product(b, a) > product(a, b) { b } else { a }
}

/// Bits a second, rounded up: a promise should not be short by a fraction.
fn rate((ticks, bytes): (u64, u64), timescale: u32) -> u64 {
    let bits = bytes as u128 * 8 * u128::from(timescale);
    u64::try_from(bits.div_ceil(u128::from(ticks.max(1)))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_segments_peak_at_the_largest() {
        let segments = [(6, 600), (6, 900), (6, 300)];
        assert_eq!(
            measure(&segments, 6, 1),
            Bandwidth {
                peak: 1200,
                average: 800
            }
        );
    }

    #[test]
    fn a_short_segment_counts_only_with_its_neighbours() {
        // The last second alone would be 8000 bit/s, but it is shorter than half the target.
        let segments = [(6, 600), (6, 600), (1, 1000)];
        assert_eq!(measure(&segments, 6, 1).peak, 1600 * 8 / 7 + 1);
    }

    #[test]
    fn a_title_shorter_than_half_the_target_peaks_at_its_average() {
        assert_eq!(measure(&[(2, 100)], 6, 1).peak, 400);
        assert_eq!(measure(&[], 6, 1), Bandwidth::default());
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            segments in proptest::collection::vec((1u64..9, 0u64..1000), 0..30), target in 1u64..9
        ) {
            let mut expected = 0;
            for from in 0..segments.len() {
                for to in from + 1..=segments.len() {
                    let ticks: u64 = segments[from..to].iter().map(|s| s.0).sum();
                    let bytes: u64 = segments[from..to].iter().map(|s| s.1).sum();
                    if ticks * 2 >= target && ticks * 2 <= target * 3 {
                        expected = expected.max((bytes * 8).div_ceil(ticks));
                    }
                }
            }
            let measured = measure(&segments, target, 1);
            prop_assert_eq!(measured.peak, expected.max(measured.average));
        }
    }
}
