//! Simulates a player and a network in virtual time, like the simulator Sabre (Spiteri, MMSys
//! 2018). A download takes the latency, and then the transfer time at the bandwidth of the trace.
//! A segment enters the buffer only when its download is complete.

use super::{AbrRule, DownloadSample, EwmaEstimator, PlayerView};

/// A period of the trace: duration in milliseconds, bandwidth in kilobits per second, and latency
/// in milliseconds.
pub(super) type NetworkPeriod = (f64, f64, f64);

pub(super) struct SimulatedMovie {
    pub(super) segment_ms: f64,
    pub(super) bitrates_kbps: Vec<f64>,
    pub(super) sizes_bits: Vec<Vec<f64>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlaybackTotals {
    /// Sum of the bitrates of all segments.
    pub(super) bitrate_kbps: f64,
    pub(super) stalled_s: f64,
    pub(super) change_kbps: f64,
}

struct SimulatedNetwork<'a> {
    trace: &'a [NetworkPeriod],
    index: usize,
    left_ms: f64,
}

impl SimulatedNetwork<'_> {
    fn start_next_period(&mut self) {
        self.index = (self.index + 1) % self.trace.len();
        self.left_ms = self.trace[self.index].0;
    }

    fn advance_by(&mut self, mut ms: f64) {
        while ms > self.left_ms {
            ms -= self.left_ms;
            self.start_next_period();
        }
        self.left_ms -= ms;
    }

    /// Returns the milliseconds to the first byte. If the latency changes before the first byte
    /// arrives, the new latency applies to the rest of the wait.
    fn advance_by_latency(&mut self) -> f64 {
        let (mut share, mut total) = (1.0, 0.0);
        while share > 0.0 {
            let latency = self.trace[self.index].2;
            let ms = share * latency;
            if ms <= self.left_ms {
                self.left_ms -= ms;
                return total + ms;
            }
            total += self.left_ms;
            share -= self.left_ms / latency;
            self.start_next_period();
        }
        total
    }

    fn advance_by_transfer(&mut self, mut bits: f64) -> f64 {
        let mut total = 0.0;
        loop {
            let kbps = self.trace[self.index].1;
            if bits <= self.left_ms * kbps {
                self.left_ms -= bits / kbps;
                return total + bits / kbps;
            }
            total += self.left_ms;
            bits -= self.left_ms * kbps;
            self.start_next_period();
        }
    }
}

pub(super) fn simulate_playback(
    movie: &SimulatedMovie,
    trace: &[NetworkPeriod],
    rule: &mut dyn AbrRule,
    buffer_max_s: f64,
) -> PlaybackTotals {
    let bitrates: Vec<f64> = movie
        .bitrates_kbps
        .iter()
        .map(|kbps| kbps * 1000.0)
        .collect();
    let segment_s = movie.segment_ms / 1000.0;
    let mut network = SimulatedNetwork {
        trace,
        index: 0,
        left_ms: trace[0].0,
    };
    let mut estimator = EwmaEstimator::default();
    let mut result = PlaybackTotals {
        bitrate_kbps: 0.0,
        stalled_s: 0.0,
        change_kbps: 0.0,
    };
    let (mut buffer_s, mut last) = (0.0_f64, 0);
    for (n, sizes) in movie.sizes_bits.iter().enumerate() {
        let mut view = PlayerView {
            now_s: 0.0,
            bitrates: &bitrates,
            buffer_s,
            buffer_max_s,
            segment_s,
            chosen: n,
            left: movie.sizes_bits.len() - n,
            last: (n > 0).then_some(last),
            estimate: estimator.estimate(),
        };
        let full_s = buffer_s + segment_s - buffer_max_s;
        if n > 0 && full_s > 0.0 {
            network.advance_by(full_s * 1000.0);
            view.buffer_s -= full_s;
            rule.record_idle(full_s);
        }
        let choice = if n == 0 {
            0.into()
        } else {
            rule.choose_level(&view)
        };
        network.advance_by(choice.wait_s * 1000.0);
        view.buffer_s = (view.buffer_s - choice.wait_s).max(0.0);
        let latency_s = network.advance_by_latency() / 1000.0;
        let transfer_s = network.advance_by_transfer(sizes[choice.level]) / 1000.0;
        let took_s = latency_s + transfer_s;
        if n > 0 {
            result.stalled_s += (took_s - view.buffer_s).max(0.0);
            result.change_kbps +=
                (movie.bitrates_kbps[choice.level] - movie.bitrates_kbps[last]).abs();
        }
        result.bitrate_kbps += movie.bitrates_kbps[choice.level];
        buffer_s = (view.buffer_s - took_s).max(0.0) + segment_s;
        last = choice.level;
        view.buffer_s = buffer_s;
        if n > 0 {
            rule.record_download(&view, choice.level, took_s);
        }
        estimator.add_sample(&DownloadSample {
            bits: sizes[choice.level],
            transfer_s,
            latency_s,
            segment_s,
        });
    }
    result
}
