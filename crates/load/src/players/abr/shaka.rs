//! The bitrate rule of Shaka Player 5 (`SimpleAbrManager`). It chooses the highest level below the
//! estimated throughput, and decides again every eight seconds.

use super::ewma::Ewma;
use super::{AbrRule, DownloadSample, LevelDecision, PlayerView};

/// Half-lives of the averages, in seconds (`fastHalfLife`, `slowHalfLife`).
const HALF_LIVES_S: [f64; 2] = [2.0, 5.0];
/// Minimum size of a sample, in bits (`minBytes`). Smaller samples are ignored.
const SAMPLE_BITS_MIN: f64 = 16e3 * 8.0;
/// Number of bits that must be received before the rule uses the measured throughput
/// (`minTotalBytes`).
const TRUSTED_BITS: f64 = 128e3 * 8.0;
/// Throughput that the rule assumes until it uses the measured throughput, in bits per second.
/// Chromium reports this value as `navigator.connection.downlink` before its first measurement.
/// Shaka Player uses the reported value instead of `defaultBandwidthEstimate`.
const DEFAULT_BPS: f64 = 1.55e6;
/// A level above the lowest is chosen only if its bitrate is at most this share of the estimated
/// throughput (`bandwidthDowngradeTarget`).
const SHARE: f64 = 0.95;
/// Seconds between two decisions (`switchInterval`).
const INTERVAL_S: f64 = 8.0;

/// The bitrate rule of Shaka Player.
#[derive(Debug, Clone)]
pub struct ShakaRule {
    throughput: [Ewma; 2],
    bits: f64,
    /// Whether the rule has made a decision with a measured throughput.
    has_measured: bool,
    /// The chosen level, and the time of this decision in seconds.
    chosen: Option<(usize, f64)>,
}

impl Default for ShakaRule {
    fn default() -> ShakaRule {
        ShakaRule {
            throughput: HALF_LIVES_S.map(Ewma::new),
            bits: 0.0,
            has_measured: false,
            chosen: None,
        }
    }
}

impl ShakaRule {
    fn measured_bps(&self) -> Option<f64> {
        let [fast, slow] = self.throughput.each_ref().map(Ewma::current_average);
        (self.bits >= TRUSTED_BITS).then_some(fast?.min(slow?))
    }
}

impl AbrRule for ShakaRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let measured = self.measured_bps();
        let is_first_measured = measured.is_some() && !self.has_measured;
        let last = self.chosen.filter(|(_, at)| {
            !is_first_measured && (view.now_s - at < INTERVAL_S || measured.is_none())
        });
        if let Some((level, _)) = last {
            return level.into();
        }
        self.has_measured |= measured.is_some();
        let most_bps = SHARE * measured.unwrap_or(DEFAULT_BPS);
        let above = view.bitrates.iter().skip(1);
        let level = above.take_while(|bps| **bps <= most_bps).count();
        self.chosen = Some((level, view.now_s));
        level.into()
    }

    fn uses_audio_samples(&self) -> bool {
        true
    }

    fn record_sample(&mut self, sample: &DownloadSample) {
        let took_s = sample.transfer_s + sample.latency_s;
        if sample.bits < SAMPLE_BITS_MIN || took_s <= 0.0 {
            return;
        }
        self.bits += sample.bits;
        for average in &mut self.throughput {
            average.add_weighted_sample(took_s, sample.bits / took_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_change_at_the_first_measurement_and_then_every_eight_seconds() {
        let mut rule = ShakaRule::default();
        let mut choose = |now_s: f64, mbps: f64| {
            let bitrates = [0.5e6, 0.9e6, 2e6, 4e6];
            let view = PlayerView {
                bitrates: &bitrates,
                buffer_s: 5.0,
                buffer_max_s: 10.0,
                segment_s: 2.0,
                chosen: 0,
                left: 20,
                last: None,
                now_s,
                estimate: None,
            };
            let level = rule.choose_level(&view).level;
            rule.record_sample(&DownloadSample {
                bits: mbps * 4e6,
                transfer_s: 3.9,
                latency_s: 0.1,
                segment_s: 2.0,
            });
            level
        };
        assert_eq!(choose(0.0, 5.0), 1, "1.55 Mb/s are assumed");
        assert_eq!(choose(4.0, 0.7), 3, "5 Mb/s were measured");
        assert_eq!(choose(8.0, 0.7), 3);
        assert_eq!(choose(12.0, 0.7), 0);
    }
}
