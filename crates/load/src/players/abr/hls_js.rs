//! The bitrate rule of hls.js 1.7 for video on demand (`AbrController`). It chooses the highest
//! level whose next segment would arrive before the buffer runs empty. The safety margin of the
//! estimated throughput is larger for levels above the level of the last segment.

use super::ewma::Ewma;
use super::{AbrRule, DownloadSample, LevelDecision, PlayerView};

/// Half-lives of the averages, in seconds (`abrEwmaFastVoD`, `abrEwmaSlowVoD`).
const HALF_LIVES_S: [f64; 2] = [3.0, 9.0];
/// Share of the estimated throughput that is usable for the level of the last segment and for lower
/// levels (`abrBandWidthFactor`).
const SHARE: f64 = 0.95;
/// Share of the estimated throughput that is usable for levels above the level of the last segment
/// (`abrBandWidthUpFactor`).
const SHARE_UP: f64 = 0.7;
/// Longest stall that the rule accepts if a stall is inevitable, in seconds (`maxStarvationDelay`).
const STALL_MAX_S: f64 = 4.0;
/// Time to the first byte that the rule assumes before the first measurement, in seconds.
const DEFAULT_LATENCY_S: f64 = 0.1;
/// Throughput that the rule assumes before the first measurement, in bits per second
/// (`abrEwmaDefaultEstimate`).
const DEFAULT_BPS: f64 = 500_000.0;

/// The bitrate rule of hls.js.
#[derive(Debug, Clone)]
pub struct HlsJsRule {
    throughput: [Ewma; 2],
    latency: Ewma,
    default_bps: f64,
}

impl Default for HlsJsRule {
    fn default() -> HlsJsRule {
        HlsJsRule {
            throughput: HALF_LIVES_S.map(Ewma::new),
            latency: Ewma::new(HALF_LIVES_S[1]),
            default_bps: DEFAULT_BPS,
        }
    }
}

impl HlsJsRule {
    fn throughput_bps(&self) -> f64 {
        let averages = self.throughput.each_ref().map(Ewma::current_average);
        match averages {
            [Some(fast), Some(slow)] => fast.min(slow),
            _ => self.default_bps,
        }
    }

    fn latency_s(&self) -> f64 {
        self.latency.current_average().unwrap_or(DEFAULT_LATENCY_S)
    }

    /// Returns the highest level whose bitrate the throughput allows and whose segment loads within
    /// `most_s` seconds.
    fn find_highest_level_in_time(&self, view: &PlayerView<'_>, most_s: f64) -> Option<usize> {
        let bps = self.throughput_bps();
        let fits = |level: &usize| {
            let is_up = view.last.is_none_or(|last| *level > last);
            let safe_bps = bps * if is_up { SHARE_UP } else { SHARE };
            let load_s = self.latency_s() + view.bitrates[*level] * view.segment_s / safe_bps;
            safe_bps >= view.bitrates[*level] && load_s < most_s
        };
        (0..view.bitrates.len()).rev().find(fits)
    }
}

impl AbrRule for HlsJsRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let stall_max_s = view.segment_s.min(STALL_MAX_S);
        let in_time = self.find_highest_level_in_time(view, view.buffer_s);
        let level =
            in_time.or_else(|| self.find_highest_level_in_time(view, view.buffer_s + stall_max_s));
        level.unwrap_or(0).into()
    }

    fn record_sample(&mut self, sample: &DownloadSample) {
        // In the latency average, samples with a long time to the first byte have less weight
        // (`sampleTTFB`).
        let weight = std::f64::consts::SQRT_2 * (-sample.latency_s.powi(2) / 2.0).exp();
        self.latency
            .add_weighted_sample(weight, sample.latency_s.max(0.005));
        let excess_s = (sample.latency_s - self.latency_s()).max(0.0);
        let took_s = sample.transfer_s + excess_s;
        for average in &mut self.throughput {
            average.add_weighted_sample(took_s.max(1e-3), sample.bits / took_s.max(1e-3));
        }
    }

    fn assume_throughput(&mut self, bps: f64) {
        if self.throughput_bps() * SHARE_UP > bps {
            self.throughput = HALF_LIVES_S.map(Ewma::new);
            self.default_bps = bps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITRATES: [f64; 3] = [1e6, 2e6, 4e6];

    fn view_after(last: usize, buffer_s: f64) -> PlayerView<'static> {
        PlayerView {
            bitrates: &BITRATES,
            buffer_s,
            buffer_max_s: 30.0,
            segment_s: 2.0,
            chosen: 3,
            left: 20,
            last: Some(last),
            now_s: 9.0,
            estimate: None,
        }
    }

    fn rule_at(bps: f64) -> HlsJsRule {
        let mut rule = HlsJsRule::default();
        (0..20).for_each(|_| {
            rule.record_sample(&DownloadSample {
                bits: bps,
                transfer_s: 1.0,
                latency_s: 0.1,
                segment_s: 2.0,
            });
        });
        rule
    }

    #[test]
    fn higher_levels_need_a_larger_margin_than_the_current_one() {
        let choose = |bps, last| rule_at(bps).choose_level(&view_after(last, 20.0)).level;
        assert_eq!((choose(4.3e6, 2), choose(4.3e6, 1)), (2, 1));
        assert_eq!((choose(5.8e6, 1), choose(2.05e6, 1)), (2, 0));
    }

    #[test]
    fn a_short_buffer_lowers_the_level() {
        let choose = |buffer_s| rule_at(6e6).choose_level(&view_after(2, buffer_s)).level;
        // A two-second segment of the 4 Mb/s level takes 1.5 s to load. This is 0.1 s of latency,
        // plus 1.4 s for 8 Mb at 95 % of 6 Mb/s.
        assert_eq!((choose(2.0), choose(0.9)), (2, 1));
    }

    #[test]
    fn a_lower_throughput_is_assumed_until_it_is_measured() {
        let mut rule = rule_at(6e6);
        rule.assume_throughput(1e6);
        assert_eq!(rule.choose_level(&view_after(2, 20.0)).level, 0);
        (0..3).for_each(|_| {
            rule.record_sample(&DownloadSample {
                bits: 6e6,
                transfer_s: 1.0,
                latency_s: 0.1,
                segment_s: 2.0,
            });
        });
        assert_eq!(rule.choose_level(&view_after(0, 20.0)).level, 2);
    }
}
