//! The throughput rule of dash.js, with its insufficient buffer rule (Spiteri et al., MMSys 2018).

use super::{Abr, Choice, View, sustainable};

/// How much of the estimate is used.
const SAFETY: f64 = 0.9;
/// How much of it is trusted to fill a short buffer, at first and at last.
const SHORT_BUFFER: [f64; 2] = [0.9, 0.5];

/// The highest level that the estimated throughput sustains.
#[derive(Debug, Clone)]
pub struct Throughput {
    short_buffer: Option<ShortBuffer>,
}

/// The insufficient buffer rule: what is asked for must arrive before the buffer runs dry.
#[derive(Debug, Clone)]
pub(super) struct ShortBuffer {
    trust: f64,
}

impl Default for Throughput {
    fn default() -> Throughput {
        Throughput {
            short_buffer: Some(ShortBuffer::default()),
        }
    }
}

impl Throughput {
    /// The rule alone, without the insufficient buffer rule.
    pub fn alone() -> Throughput {
        Throughput { short_buffer: None }
    }
}

impl Abr for Throughput {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        let Some(estimate) = view.estimate else {
            return 0.into();
        };
        let level = sustainable(view, estimate.throughput_bps * SAFETY, estimate.latency_s);
        match &mut self.short_buffer {
            Some(rule) => rule.bound(view, level).into(),
            None => level.into(),
        }
    }
}

impl Default for ShortBuffer {
    fn default() -> ShortBuffer {
        ShortBuffer {
            trust: SHORT_BUFFER[0],
        }
    }
}

impl ShortBuffer {
    /// The highest level, up to `level`, whose segment comes before the buffer is empty.
    pub(super) fn bound(&mut self, view: &View<'_>, level: usize) -> usize {
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
