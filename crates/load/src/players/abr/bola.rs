//! BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016) in the form that dash.js plays with: BOLA-E
//! (MMSys 2018), whose placeholder buffer stands for segments that could have been fetched.

use super::throughput::ShortBuffer;
use super::{Abr, Choice, View, sustainable};

/// Seconds of buffer that the lowest level is content with.
const LEAST_S: f64 = 10.0;
/// Seconds more for each level.
const PER_LEVEL_S: f64 = 2.0;

/// The level that is worth most: utility and playback against bits and buffer.
#[derive(Debug, Clone, Default)]
pub struct Bola {
    /// Utility of the lowest level: dash.js says 0 here, the simulator Sabre 1.
    lowest: f64,
    started: bool,
    placeholder_s: f64,
    last: usize,
    short_buffer: ShortBuffer,
}

/// Weights that follow from the ladder: utilities, γp and V (in seconds).
struct Weights<'a> {
    bitrates: &'a [f64],
    lowest: f64,
    gp: f64,
    vp: f64,
}

impl<'a> Weights<'a> {
    fn new(view: &View<'a>, lowest: f64) -> Weights<'a> {
        let levels = view.bitrates.len() as f64;
        let buffer_s = (LEAST_S + PER_LEVEL_S * levels).max(view.buffer_max_s);
        let span = (view.bitrates[view.bitrates.len() - 1] / view.bitrates[0]).ln();
        // One level, or levels of one bitrate, leave nothing to weigh.
        let gp = (span / (buffer_s / LEAST_S - 1.0)).max(1e-6);
        Weights {
            bitrates: view.bitrates,
            lowest,
            gp,
            vp: LEAST_S / gp,
        }
    }

    /// The logarithm of how many times the lowest bitrate it is.
    fn utility(&self, level: usize) -> f64 {
        self.lowest + (self.bitrates[level] / self.bitrates[0]).ln()
    }

    fn score(&self, level: usize, buffer_s: f64) -> f64 {
        (self.vp * (self.utility(level) + self.gp) - buffer_s) / self.bitrates[level]
    }

    /// Ties go to the lower level: it costs less.
    fn best(&self, buffer_s: f64) -> usize {
        let mut best = 0;
        for level in 1..self.bitrates.len() {
            if self.score(level, buffer_s) > self.score(best, buffer_s) {
                best = level;
            }
        }
        best
    }

    /// The buffer above which a level is too good to wait for.
    fn most_s(&self, level: usize) -> f64 {
        self.vp * (self.utility(level) + self.gp)
    }

    /// The buffer from which a level is better than all below it.
    fn least_s(&self, level: usize) -> f64 {
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
impl Bola {
    /// As the simulator weighs.
    pub(super) fn of_sabre() -> Bola {
        Bola {
            lowest: 1.0,
            ..Bola::default()
        }
    }
}

impl Abr for Bola {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        let Some(estimate) = view.estimate else {
            return self.last.min(view.bitrates.len() - 1).into();
        };
        let weights = Weights::new(view, self.lowest);
        let sustained = sustainable(view, estimate.throughput_bps, estimate.latency_s);
        if !self.started {
            // Begin where the network is, as if the buffer had come to it by itself.
            self.started = true;
            self.short_buffer = ShortBuffer::default();
            self.placeholder_s = (weights.least_s(sustained) - view.buffer_s).max(0.0);
            return sustained.into();
        }
        let mut level = weights.best(view.buffer_s + self.placeholder_s);
        let last = self.last.min(view.bitrates.len() - 1);
        if level > last && level > sustained {
            // No oscillation: not above what is sustained, not below what was.
            level = last.max(sustained);
        }
        let mut wait_s = (view.buffer_s + self.placeholder_s - weights.most_s(level)).max(0.0);
        let by_placeholder = wait_s.min(self.placeholder_s);
        self.placeholder_s -= by_placeholder;
        wait_s -= by_placeholder;
        if level == view.bitrates.len() - 1 {
            wait_s = 0.0;
        }
        let bound = self.short_buffer.bound(view, level);
        if bound < level {
            level = bound;
            wait_s = 0.0;
            let most = (weights.least_s(level) - view.buffer_s).max(0.0);
            self.placeholder_s = self.placeholder_s.min(most);
        }
        Choice { level, wait_s }
    }

    fn downloaded(&mut self, view: &View<'_>, level: usize, took_s: f64) {
        self.last = level;
        let weights = Weights::new(view, self.lowest);
        let (level, before_s) = (level.min(view.bitrates.len() - 1), view.buffer_s + took_s);
        let most = (weights.most_s(level) - before_s).max(0.0);
        self.placeholder_s = self.placeholder_s.min(most);
        if view.buffer_s > 0.0 {
            // Another rule may have chosen; the buffer then stands for what it chose.
            self.placeholder_s = self.placeholder_s.max(weights.least_s(level) - before_s);
        }
    }

    fn idled(&mut self, seconds: f64) {
        self.placeholder_s += seconds;
    }

    fn sought(&mut self) {
        self.started = false;
    }
}
