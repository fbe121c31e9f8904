//! The rule DYNAMIC of dash.js (Spiteri et al., MMSys 2018). It uses the throughput rule while the
//! buffer is short, and BOLA while the buffer is long.

use super::{AbrRule, BolaRule, LevelDecision, PlayerView, ThroughputRule};

/// Buffer levels at which the rule switches to BOLA and back to the throughput rule, as shares of
/// the buffer limit. With a limit of 18 s, dash.js 5.2 switches to BOLA at 12 s
/// (`hybridSwitchBufferTime`), and back at half of this value. With a larger limit, dash.js uses
/// the same values in seconds.
const SHARES: [f64; 2] = [MOST_S[0] / 18.0, MOST_S[1] / 18.0];
const MOST_S: [f64; 2] = [12.0, 6.0];

/// Switches between the throughput rule and BOLA, depending on the buffer level.
#[derive(Debug, Clone, Default)]
pub struct DynamicRule {
    throughput: ThroughputRule,
    bola: BolaRule,
    by_buffer: bool,
    thresholds_s: Option<[f64; 2]>,
}

#[cfg(test)]
impl DynamicRule {
    /// Creates the rule with the parameters of `dynamicdash` in the simulator Sabre.
    pub(super) fn with_sabre_parameters() -> DynamicRule {
        DynamicRule {
            bola: BolaRule::with_sabre_parameters(),
            thresholds_s: Some([10.0, 5.0]),
            ..DynamicRule::default()
        }
    }
}

impl DynamicRule {
    fn thresholds_s(&self, view: &PlayerView<'_>) -> [f64; 2] {
        let shares = [0, 1].map(|n: usize| (SHARES[n] * view.buffer_max_s).min(MOST_S[n]));
        self.thresholds_s.unwrap_or(shares)
    }
}

impl AbrRule for DynamicRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let [high, low] = self.thresholds_s(view);
        self.by_buffer = match self.by_buffer {
            true => view.buffer_s >= low,
            false => view.buffer_s >= high,
        };
        match self.by_buffer {
            true => self.bola.choose_level(view),
            false => self.throughput.choose_level(view),
        }
    }

    fn record_download(&mut self, view: &PlayerView<'_>, level: usize, took_s: f64) {
        self.bola.record_download(view, level, took_s);
    }

    fn record_idle(&mut self, seconds: f64) {
        self.bola.record_idle(seconds);
    }

    fn reset_after_seek(&mut self) {
        self.bola.reset_after_seek();
        self.by_buffer = false;
    }
}
