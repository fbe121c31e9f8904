//! The throughput rule of dash.js, with its insufficient buffer rule (Spiteri et al., MMSys 2018).

use super::{AbrRule, LevelDecision, PlayerView, sustainable_level};

/// Share of the estimated throughput that the rule uses.
const SAFETY: f64 = 0.9;
/// Initial and minimum share of the estimated throughput that the insufficient buffer rule uses.
/// Each decision multiplies the share by the initial share, until the minimum is reached.
const SHORT_BUFFER: [f64; 2] = [0.9, 0.5];

/// Chooses the highest level that the estimated throughput sustains.
#[derive(Debug, Clone)]
pub struct ThroughputRule {
    short_buffer: Option<InsufficientBufferRule>,
}

/// The insufficient buffer rule. Above the lowest level, this rule allows only levels whose next
/// segment would arrive before the buffer runs empty.
#[derive(Debug, Clone)]
pub(super) struct InsufficientBufferRule {
    trust: f64,
}

impl Default for ThroughputRule {
    fn default() -> ThroughputRule {
        ThroughputRule {
            short_buffer: Some(InsufficientBufferRule::default()),
        }
    }
}

impl ThroughputRule {
    /// Creates the throughput rule without the insufficient buffer rule.
    pub fn without_buffer_rule() -> ThroughputRule {
        ThroughputRule { short_buffer: None }
    }
}

impl AbrRule for ThroughputRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let Some(estimate) = view.estimate else {
            return 0.into();
        };
        let level = sustainable_level(view, estimate.throughput_bps * SAFETY, estimate.latency_s);
        match &mut self.short_buffer {
            Some(rule) => rule.limit_level(view, level).into(),
            None => level.into(),
        }
    }
}

impl Default for InsufficientBufferRule {
    fn default() -> InsufficientBufferRule {
        InsufficientBufferRule {
            trust: SHORT_BUFFER[0],
        }
    }
}

impl InsufficientBufferRule {
    /// Returns the highest level, up to `level`, whose segment arrives before the buffer is empty.
    pub(super) fn limit_level(&mut self, view: &PlayerView<'_>, level: usize) -> usize {
        let Some(estimate) = view.estimate else {
            return level;
        };
        let safe_bits = self.trust * (view.buffer_s - estimate.latency_s) * estimate.throughput_bps;
        self.trust = (self.trust * SHORT_BUFFER[0]).max(SHORT_BUFFER[1]);
        let above = view.bitrates.iter().skip(1).take(level);
        above
            .take_while(|bitrate| *bitrate * view.segment_s <= safe_bits)
            .count()
    }
}
