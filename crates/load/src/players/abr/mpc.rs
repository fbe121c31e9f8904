//! Robust MPC (Yin et al., SIGCOMM 2015): the best of all ways through the next five segments, at
//! the throughput that the worst recent error leaves.

use super::{Abr, Choice, View};

/// Segments looked ahead.
const HORIZON: usize = 5;
/// Errors of prediction that are remembered.
const RECENT: usize = 5;
/// Kilobits a second that a second of stall costs ("balanced").
const STALL_KBPS: f64 = 3000.0;

/// Maximises bitrates less changes less stalls.
#[derive(Debug, Clone, Default)]
pub struct RobustMpc {
    /// What was predicted last, in bits a second.
    predicted: Option<f64>,
    errors: [f64; RECENT],
    count: usize,
}

impl RobustMpc {
    fn robust_bps(&mut self, view: &View<'_>) -> Option<f64> {
        let estimate = view.estimate?;
        self.predicted = Some(estimate.harmonic_bps);
        let worst = self.errors.iter().copied().fold(0.0, f64::max);
        Some(estimate.harmonic_bps / (1.0 + worst))
    }
}

impl Abr for RobustMpc {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        let Some(bps) = self.robust_bps(view) else {
            return 0.into();
        };
        let mut search = Search {
            view,
            bps,
            found: (f64::NEG_INFINITY, 0),
        };
        let horizon = HORIZON.min(view.left.max(1));
        let last = view.last.map(|level| level.min(view.bitrates.len() - 1));
        search.walk(horizon, view.buffer_s, last, 0.0, None);
        search.found.1.into()
    }

    fn downloaded(&mut self, view: &View<'_>, level: usize, took_s: f64) {
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

struct Search<'a> {
    view: &'a View<'a>,
    bps: f64,
    /// The best sum so far, and the level that it begins with.
    found: (f64, usize),
}

impl Search<'_> {
    /// Tries all ways through the next `left` segments, but those that cannot become the best: a
    /// segment earns at most the top bitrate.
    fn walk(
        &mut self,
        left: usize,
        buffer_s: f64,
        last: Option<usize>,
        sum: f64,
        first: Option<usize>,
    ) {
        let top_kbps = self.view.bitrates[self.view.bitrates.len() - 1] / 1000.0;
        for level in (0..self.view.bitrates.len()).rev() {
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
                self.walk(left - 1, held_s, Some(level), sum, Some(first));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Estimate;
    use super::*;
    use proptest::prelude::*;

    /// The definition, without short cuts: every sequence of levels is tried.
    fn by_definition(view: &View<'_>, bps: f64) -> f64 {
        let levels = view.bitrates.len();
        let ways = 0..levels.pow(HORIZON as u32);
        ways.map(|way| sum_of(view, bps, |n| way / levels.pow(n as u32) % levels))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn sum_of(view: &View<'_>, bps: f64, level: impl Fn(usize) -> usize) -> f64 {
        let (mut held, mut last, mut sum) = (view.buffer_s, view.last, 0.0);
        for n in 0..HORIZON {
            let bitrate = view.bitrates[level(n)];
            let took = bitrate * view.segment_s / bps;
            sum += bitrate / 1000.0 - STALL_KBPS * (took - held).max(0.0);
            sum -= last.map_or(0.0, |last| (bitrate - view.bitrates[last]).abs() / 1000.0);
            held = ((held - took).max(0.0) + view.segment_s).min(view.buffer_max_s);
            last = Some(level(n));
        }
        sum
    }

    proptest! {
        #[test]
        fn the_search_finds_what_the_definition_says(
            bps in 1e5..2e7_f64, buffer_s in 0.0..20.0_f64, last in 0_usize..4,
        ) {
            let view = View {
                bitrates: &[4e5, 1e6, 2.5e6, 6e6],
                buffer_s,
                buffer_max_s: 20.0,
                segment_s: 4.0,
                chosen: 3,
                left: 50,
                last: Some(last),
                estimate: Some(Estimate { throughput_bps: bps, latency_s: 0.0, harmonic_bps: bps }),
            };
            let mut search = Search { view: &view, bps, found: (f64::NEG_INFINITY, 0) };
            search.walk(HORIZON, buffer_s, view.last, 0.0, None);
            prop_assert!((search.found.0 - by_definition(&view, bps)).abs() < 1e-6);
            prop_assert_eq!(RobustMpc::default().choose(&view).level, search.found.1);
        }
    }

    #[test]
    fn errors_make_it_careful() {
        let estimate = |bps| {
            Some(Estimate {
                throughput_bps: bps,
                latency_s: 0.0,
                harmonic_bps: bps,
            })
        };
        let view = View {
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
        assert_eq!(rule.choose(&view).level, 1);
        // Predicted 4.5 Mb/s, came at 1: an error of 3.5 leaves 1 Mb/s.
        rule.downloaded(&view, 1, 16.0);
        assert_eq!(rule.choose(&view).level, 0);
    }
}
