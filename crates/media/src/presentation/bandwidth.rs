//! Bandwidth of renditions, measured over their segments.

use super::{Presentation, Rendition};

/// Bandwidth of the served segments, including their headers, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// The largest bitrate of any run of consecutive segments that lasts between 0.5 and 1.5 target
    /// durations (the "peak segment bit rate" of RFC 8216, 4.3.4.2).
    pub peak: u64,
    /// The bits of all segments divided by the total duration.
    pub average: u64,
}

impl Presentation {
    /// Measures the bandwidth of a rendition whose segment `n` has `len(n)` bytes.
    pub(crate) fn measure_bandwidth(
        &self,
        rendition: &Rendition,
        len: impl Fn(usize) -> u64,
    ) -> Bandwidth {
        let ticks = |n| self.segment_duration_ticks(rendition, n);
        let segments = (0..rendition.segment_count()).map(|n| (ticks(n), len(n)));
        self.compute_segments_bandwidth(rendition, segments.collect())
    }

    /// Measures the bandwidth of the key frames of a video rendition, which trick play fetches.
    pub(crate) fn measure_key_frame_bandwidth(&self, rendition: &Rendition) -> Bandwidth {
        let mut segments: Vec<(u64, u64)> = Vec::new();
        let mut last = 0;
        for key in self.trick_play_key_frames(rendition).chain([u32::MAX]) {
            let time = self.presentation_time(rendition, key);
            if let Some(before) = segments.last_mut() {
                before.0 = time - last;
            }
            last = time;
            if key < u32::MAX {
                segments.push((0, self.key_frame_fragment_len(rendition, key)));
            }
        }
        self.compute_segments_bandwidth(rendition, segments)
    }

    fn compute_segments_bandwidth(
        &self,
        rendition: &Rendition,
        segments: Vec<(u64, u64)>,
    ) -> Bandwidth {
        let timescale = self.track(rendition).timescale;
        let target = u64::from(self.target_duration_s) * u64::from(timescale);
        compute_peak_and_average(&segments, target, timescale)
    }
}

/// Maximum number of measured runs that start at the same segment. Ordinary segments last about a
/// target duration, so only one or two runs have an allowed duration. Only titles that mix very
/// short and very long segments have more such runs.
const RUNS_MAX: usize = 16;

/// Measures segments, each given as its duration in ticks and its length in bytes. `target` is the
/// target duration in ticks.
fn compute_peak_and_average(segments: &[(u64, u64)], target: u64, timescale: u32) -> Bandwidth {
    let sum = |segments: &[(u64, u64)]| {
        segments
            .iter()
            .fold((0, 0), |(ticks, bytes): (u64, u64), segment| {
                (ticks + segment.0, bytes + segment.1)
            })
    };
    let average = bits_per_second(sum(segments), timescale);
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
            .take(RUNS_MAX)
        {
            if longer.0 * 2 > target * 3 {
                break;
            }
            if longer.0 * 2 >= target {
                peak = higher_bitrate_run(peak, longer);
            }
            longer = next.map_or(longer, |next| (longer.0 + next.0, longer.1 + next.1));
        }
        run = (run.0 - segment.0, run.1 - segment.1);
    }
    Bandwidth {
        peak: bits_per_second(peak, timescale).max(average),
        average,
    }
}

/// Returns the run with more bytes per tick. The comparison is exact, because it needs no division.
fn higher_bitrate_run(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let product = |(_, bytes): (u64, u64), (ticks, _): (u64, u64)| {
        u128::from(bytes) * u128::from(ticks.max(1))
    };
    if product(b, a) > product(a, b) { b } else { a }
}

/// Returns bits per second, rounded up, because a declared bandwidth must not be too low.
fn bits_per_second((ticks, bytes): (u64, u64), timescale: u32) -> u64 {
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
            compute_peak_and_average(&segments, 6, 1),
            Bandwidth {
                peak: 1200,
                average: 800
            }
        );
    }

    #[test]
    fn a_short_segment_is_measured_with_its_neighbours() {
        // The last segment alone would have 8000 bit/s. Its duration of 1 s is less than half the
        // target of 6 s, so it is measured together with the segment before.
        let segments = [(6, 600), (6, 600), (1, 1000)];
        assert_eq!(
            compute_peak_and_average(&segments, 6, 1).peak,
            1600 * 8 / 7 + 1
        );
    }

    #[test]
    fn a_title_shorter_than_half_the_target_peaks_at_its_average() {
        assert_eq!(compute_peak_and_average(&[(2, 100)], 6, 1).peak, 400);
        assert_eq!(compute_peak_and_average(&[], 6, 1), Bandwidth::default());
    }

    proptest! {
        #[test]
        fn the_peak_equals_its_definition(
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
            let measured = compute_peak_and_average(&segments, target, 1);
            prop_assert_eq!(measured.peak, expected.max(measured.average));
        }
    }
}
