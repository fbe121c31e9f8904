//! The rule BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016) in the variant BOLA-E (MMSys 2018),
//! as in dash.js. The placeholder buffer of BOLA-E represents segments that could already have been
//! fetched.

use super::throughput::InsufficientBufferRule;
use super::{AbrRule, LevelDecision, PlayerView, sustainable_level};

/// Minimum buffer, in seconds.
const LEAST_S: f64 = 10.0;
/// Additional minimum buffer for each level, in seconds.
const PER_LEVEL_S: f64 = 2.0;

/// Chooses the level with the most benefit per bit. The benefit of a level is V × (utility + γp)
/// minus the buffer level, where γp is the weight of smooth playback.
#[derive(Debug, Clone, Default)]
pub struct BolaRule {
    /// Utility of the lowest level, which is 0 in dash.js and 1 in the simulator Sabre.
    lowest: f64,
    started: bool,
    placeholder_s: f64,
    last: usize,
    short_buffer: InsufficientBufferRule,
}

/// Parameters of the paper, derived from the bitrate ladder: utilities, γp, and V in seconds.
struct BolaWeights<'a> {
    bitrates: &'a [f64],
    lowest: f64,
    gp: f64,
    vp: f64,
}

impl<'a> BolaWeights<'a> {
    fn new(view: &PlayerView<'a>, lowest: f64) -> BolaWeights<'a> {
        let levels = view.bitrates.len() as f64;
        let buffer_s = (LEAST_S + PER_LEVEL_S * levels).max(view.buffer_max_s);
        let span = (view.bitrates[view.bitrates.len() - 1] / view.bitrates[0]).ln();
        // With a single bitrate, `span` is 0. The minimum of 1e-6 avoids a division by zero.
        let gp = (span / (buffer_s / LEAST_S - 1.0)).max(1e-6);
        BolaWeights {
            bitrates: view.bitrates,
            lowest,
            gp,
            vp: LEAST_S / gp,
        }
    }

    /// Returns the utility of a level. This is the logarithm of the level's bitrate relative to the
    /// lowest bitrate, plus the utility of the lowest level.
    fn utility(&self, level: usize) -> f64 {
        self.lowest + (self.bitrates[level] / self.bitrates[0]).ln()
    }

    fn level_score(&self, level: usize, buffer_s: f64) -> f64 {
        (self.vp * (self.utility(level) + self.gp) - buffer_s) / self.bitrates[level]
    }

    /// Returns the level with the best score. If several levels have the best score, returns the
    /// lowest of these levels, which needs the fewest bits.
    fn best_level(&self, buffer_s: f64) -> usize {
        let mut best = 0;
        for level in 1..self.bitrates.len() {
            if self.level_score(level, buffer_s) > self.level_score(best, buffer_s) {
                best = level;
            }
        }
        best
    }

    /// Returns the buffer level in seconds above which the player waits before it fetches this
    /// level.
    fn fetch_threshold_s(&self, level: usize) -> f64 {
        self.vp * (self.utility(level) + self.gp)
    }

    /// Returns the buffer level in seconds from which this level has a better score than all lower
    /// levels.
    fn entry_threshold_s(&self, level: usize) -> f64 {
        let (rate, utility) = (self.bitrates[level], self.utility(level));
        let crossing = |below: usize| {
            let (other, worth) = (self.bitrates[below], self.utility(below));
            self.vp * (self.gp + (rate * worth - other * utility) / (rate - other))
        };
        let below = (0..level).filter(|below| self.bitrates[*below] < rate);
        below.map(crossing).fold(0.0, f64::max)
    }
}

#[cfg(test)]
impl BolaRule {
    /// Creates the rule with the parameters of the simulator Sabre.
    pub(super) fn with_sabre_parameters() -> BolaRule {
        BolaRule {
            lowest: 1.0,
            ..BolaRule::default()
        }
    }
}

impl AbrRule for BolaRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let Some(estimate) = view.estimate else {
            return self.last.min(view.bitrates.len() - 1).into();
        };
        let weights = BolaWeights::new(view, self.lowest);
        let sustained = sustainable_level(view, estimate.throughput_bps, estimate.latency_s);
        if !self.started {
            // Start at the sustainable level. Set the placeholder as if the buffer had already
            // grown to the threshold of this level.
            self.started = true;
            self.short_buffer = InsufficientBufferRule::default();
            self.placeholder_s = (weights.entry_threshold_s(sustained) - view.buffer_s).max(0.0);
            return sustained.into();
        }
        let mut level = weights.best_level(view.buffer_s + self.placeholder_s);
        let last = self.last.min(view.bitrates.len() - 1);
        if level > last && level > sustained {
            // To avoid oscillation, do not rise above the sustainable level. If the last level is
            // already above the sustainable level, keep the last level.
            level = last.max(sustained);
        }
        let mut wait_s =
            (view.buffer_s + self.placeholder_s - weights.fetch_threshold_s(level)).max(0.0);
        let by_placeholder = wait_s.min(self.placeholder_s);
        self.placeholder_s -= by_placeholder;
        wait_s -= by_placeholder;
        if level == view.bitrates.len() - 1 {
            wait_s = 0.0;
        }
        let bound = self.short_buffer.limit_level(view, level);
        if bound < level {
            level = bound;
            wait_s = 0.0;
            let most = (weights.entry_threshold_s(level) - view.buffer_s).max(0.0);
            self.placeholder_s = self.placeholder_s.min(most);
        }
        LevelDecision { level, wait_s }
    }

    fn record_download(&mut self, view: &PlayerView<'_>, level: usize, took_s: f64) {
        self.last = level;
        let weights = BolaWeights::new(view, self.lowest);
        let (level, before_s) = (level.min(view.bitrates.len() - 1), view.buffer_s + took_s);
        let most = (weights.fetch_threshold_s(level) - before_s).max(0.0);
        self.placeholder_s = self.placeholder_s.min(most);
        if view.buffer_s > 0.0 {
            // Another rule may have chosen the level. The placeholder is raised to the value from
            // which BOLA would choose the same level.
            self.placeholder_s = self
                .placeholder_s
                .max(weights.entry_threshold_s(level) - before_s);
        }
    }

    fn record_idle(&mut self, seconds: f64) {
        self.placeholder_s += seconds;
    }

    fn reset_after_seek(&mut self) {
        self.started = false;
    }
}
