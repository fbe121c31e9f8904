//! The rule Robust MPC (Yin et al., SIGCOMM 2015). It searches for the best sequence of levels for
//! the next five segments. For this search, the predicted throughput is divided by 1 plus the worst
//! recent relative error of a prediction.

use super::{AbrRule, LevelDecision, PlayerView, sustainable_level};
use std::ops::Range;

/// Number of segments planned ahead.
const HORIZON: usize = 5;
/// Number of recent prediction errors that the rule considers.
const RECENT: usize = 5;
/// Maximum number of levels that the search considers. The number of sequences grows with the power
/// `HORIZON` of the number of levels, and the server determines the number of levels.
const LEVELS_MAX: usize = 12;
/// Cost of one second of stall, in kilobits per second. This is the weight of the paper's
/// "balanced" preference.
const STALL_KBPS: f64 = 3000.0;

/// Maximizes the sum of the bitrates minus the bitrate changes and the cost of stalls.
#[derive(Debug, Clone, Default)]
pub struct RobustMpc {
    /// Last predicted throughput, in bits per second.
    predicted: Option<f64>,
    errors: [f64; RECENT],
    count: usize,
}

impl RobustMpc {
    fn robust_bps(&mut self, view: &PlayerView<'_>) -> Option<f64> {
        let estimate = view.estimate?;
        self.predicted = Some(estimate.harmonic_bps);
        let worst = self.errors.iter().copied().fold(0.0, f64::max);
        Some(estimate.harmonic_bps / (1.0 + worst))
    }
}

impl AbrRule for RobustMpc {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let Some(bps) = self.robust_bps(view) else {
            return 0.into();
        };
        let mut search = MpcSearch {
            view,
            bps,
            levels: considered_levels(view, bps),
            found: (f64::NEG_INFINITY, 0),
        };
        let horizon = HORIZON.min(view.left.max(1));
        let last = view.last.map(|level| level.min(view.bitrates.len() - 1));
        search.search_levels(horizon, view.buffer_s, last, 0.0, None);
        search.found.1.into()
    }

    fn record_download(&mut self, view: &PlayerView<'_>, level: usize, took_s: f64) {
        let Some(predicted) = self.predicted else {
            return;
        };
        let bits = view
            .bitrates
            .get(level)
            .map_or(0.0, |bitrate| bitrate * view.segment_s);
        let actual = bits / took_s.max(1e-6);
        if actual > 0.0 {
            self.errors[self.count % RECENT] = (predicted - actual).abs() / actual;
            self.count += 1;
        }
    }
}

/// Returns the levels that the search considers: all levels, or the [`LEVELS_MAX`] levels around the
/// sustainable level.
fn considered_levels(view: &PlayerView<'_>, bps: f64) -> Range<usize> {
    let count = view.bitrates.len().min(LEVELS_MAX);
    let first = sustainable_level(view, bps, 0.0).saturating_sub(count / 2);
    let first = first.min(view.bitrates.len() - count);
    first..first + count
}

struct MpcSearch<'a> {
    view: &'a PlayerView<'a>,
    bps: f64,
    levels: Range<usize>,
    /// The best sum so far, and the first level of its sequence.
    found: (f64, usize),
}

impl MpcSearch<'_> {
    /// Searches all level sequences for the next `left` segments. Skips sequences that cannot
    /// become the best, even if all further segments have the highest bitrate.
    fn search_levels(
        &mut self,
        left: usize,
        buffer_s: f64,
        last: Option<usize>,
        sum: f64,
        first: Option<usize>,
    ) {
        let top_kbps = self.view.bitrates[self.levels.end - 1] / 1000.0;
        for level in self.levels.clone().rev() {
            let bitrate = self.view.bitrates[level];
            let took_s = bitrate * self.view.segment_s / self.bps;
            let stalled_s = (took_s - buffer_s).max(0.0);
            let changed = last.map_or(0.0, |last| (bitrate - self.view.bitrates[last]).abs());
            let sum = sum + (bitrate - changed) / 1000.0 - STALL_KBPS * stalled_s;
            let first = first.unwrap_or(level);
            if left == 1 && sum > self.found.0 {
                self.found = (sum, first);
            }
            if left > 1 && sum + (left - 1) as f64 * top_kbps > self.found.0 {
                let held_s = (buffer_s - took_s).max(0.0) + self.view.segment_s;
                let held_s = held_s.min(self.view.buffer_max_s);
                self.search_levels(left - 1, held_s, Some(level), sum, Some(first));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NetworkEstimate;
    use super::*;
    use proptest::prelude::*;

    /// Returns the highest sum that any level sequence has. Computes the sums of all sequences.
    fn by_definition(view: &PlayerView<'_>, bps: f64) -> f64 {
        let levels = view.bitrates.len();
        let ways = 0..levels.pow(HORIZON as u32);
        ways.map(|way| sum_of(view, bps, |n| way / levels.pow(n as u32) % levels))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn sum_of(view: &PlayerView<'_>, bps: f64, level: impl Fn(usize) -> usize) -> f64 {
        let (mut buffer_s, mut last, mut sum) = (view.buffer_s, view.last, 0.0);
        for n in 0..HORIZON {
            let bitrate = view.bitrates[level(n)];
            let took = bitrate * view.segment_s / bps;
            sum += bitrate / 1000.0 - STALL_KBPS * (took - buffer_s).max(0.0);
            sum -= last.map_or(0.0, |last| (bitrate - view.bitrates[last]).abs() / 1000.0);
            buffer_s = ((buffer_s - took).max(0.0) + view.segment_s).min(view.buffer_max_s);
            last = Some(level(n));
        }
        sum
    }

    proptest! {
        #[test]
        fn the_search_finds_the_optimum_of_the_definition(
            bps in 1e5..2e7_f64, buffer_s in 0.0..20.0_f64, last in 0_usize..4,
        ) {
            let view = PlayerView {
                now_s: 0.0,
                bitrates: &[4e5, 1e6, 2.5e6, 6e6],
                buffer_s,
                buffer_max_s: 20.0,
                segment_s: 4.0,
                chosen: 3,
                left: 50,
                last: Some(last),
                estimate: Some(NetworkEstimate { throughput_bps: bps, latency_s: 0.0, harmonic_bps: bps }),
            };
            let mut search = MpcSearch { view: &view, bps, levels: 0..4, found: (f64::NEG_INFINITY, 0) };
            search.search_levels(HORIZON, buffer_s, view.last, 0.0, None);
            prop_assert!((search.found.0 - by_definition(&view, bps)).abs() < 1e-6);
            prop_assert_eq!(RobustMpc::default().choose_level(&view).level, search.found.1);
        }
    }

    #[test]
    fn many_levels_are_searched_near_the_sustainable_level() {
        let bitrates: Vec<f64> = (1..=1000).map(|n| f64::from(n) * 1e4).collect();
        let bps = 5e6;
        let view = PlayerView {
            now_s: 0.0,
            bitrates: &bitrates,
            buffer_s: 0.0,
            buffer_max_s: 20.0,
            segment_s: 4.0,
            chosen: 3,
            left: 50,
            last: Some(499),
            estimate: Some(NetworkEstimate {
                throughput_bps: bps,
                latency_s: 0.0,
                harmonic_bps: bps,
            }),
        };
        let levels = considered_levels(&view, bps);
        assert_eq!((levels.len(), levels.contains(&499)), (LEVELS_MAX, true));
        assert!(levels.contains(&RobustMpc::default().choose_level(&view).level));
        for extreme_bps in [1.0, 1e12] {
            let levels = considered_levels(&view, extreme_bps);
            assert!(levels.len() == LEVELS_MAX && levels.end <= bitrates.len());
        }
    }

    #[test]
    fn prediction_errors_lower_the_level() {
        let estimate = |bps| {
            Some(NetworkEstimate {
                throughput_bps: bps,
                latency_s: 0.0,
                harmonic_bps: bps,
            })
        };
        let view = PlayerView {
            now_s: 0.0,
            bitrates: &[1e6, 4e6],
            buffer_s: 4.0,
            buffer_max_s: 20.0,
            segment_s: 4.0,
            chosen: 3,
            left: 50,
            last: Some(1),
            estimate: estimate(4.5e6),
        };
        let mut rule = RobustMpc::default();
        assert_eq!(rule.choose_level(&view).level, 1);
        // The prediction was 4.5 Mb/s, and the measurement was 1 Mb/s. The relative error of 3.5
        // reduces the predicted throughput to 4.5 / (1 + 3.5) = 1 Mb/s.
        rule.record_download(&view, 1, 16.0);
        assert_eq!(rule.choose_level(&view).level, 0);
    }
}
