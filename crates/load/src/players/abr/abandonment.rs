//! Rules by which a player abandons a segment during the download, and loads the segment at another
//! level instead.
//!
//! The conditions follow the default rules of the players: `_abandonRulesCheck` of hls.js,
//! `AbandonRequestsRule` of dash.js, and `shouldAbortCurrentRequest_` of Shaka Player.

use super::{AbrRule, PlayerView};

/// Time to the first byte that hls.js assumes before its first measurement, in seconds.
const DEFAULT_LATENCY_S: f64 = 0.1;
/// Minimum download time of a segment that dash.js abandons, as a multiple of the segment's
/// duration (`abandonDurationMultiplier`).
const DASH_JS_DURATIONS: f64 = 1.8;
/// Period after the first byte during which dash.js abandons no segment, in seconds
/// (`minSegmentDownloadTimeThresholdInMs`).
const DASH_JS_TRANSFER_MIN_S: f64 = 0.5;

/// A player's rule for abandoning a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AbandonRule {
    /// The player receives every segment completely.
    #[default]
    Never,
    /// Abandons a segment if its rest would arrive after the buffer runs empty, and if the same
    /// segment at a lower level would arrive earlier than the rest.
    HlsJs,
    /// Abandons a segment if its expected download time is at least 1.8 times the segment's
    /// duration, and if the rest is larger than the same segment at a lower level.
    DashJs,
    /// Abandons a segment if the bitrate rule now chooses another level. The segment at that level
    /// must arrive before the buffer runs empty, or earlier than the rest of the current segment.
    Shaka,
}

/// The state of a segment during its download.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartialDownload {
    /// Level of the segment.
    pub level: usize,
    /// Seconds since the request.
    pub elapsed_s: f64,
    /// Seconds from the request to the first byte; `None` before the first byte.
    pub latency_s: Option<f64>,
    /// Bits received.
    pub bits: f64,
}

impl PartialDownload {
    /// Returns the throughput since the first byte in bits per second, or `None` before the first
    /// byte.
    fn throughput_bps(&self) -> Option<f64> {
        let transfer_s = self.elapsed_s - self.latency_s?;
        (self.bits > 0.0 && transfer_s > 0.0).then(|| self.bits / transfer_s)
    }

    /// Returns the number of bits that are still missing, estimated from the declared bitrate.
    fn missing_bits(&self, view: &PlayerView<'_>) -> f64 {
        (view.bitrates[self.level] * view.segment_s - self.bits).max(0.0)
    }
}

impl AbandonRule {
    /// Returns the shortest time between a request and the abandonment of its segment, in seconds.
    pub fn earliest_abandonment_s(self, segment_s: f64) -> f64 {
        match self {
            AbandonRule::Never => f64::INFINITY,
            AbandonRule::HlsJs => segment_s / 2.0,
            AbandonRule::DashJs => DASH_JS_TRANSFER_MIN_S,
            AbandonRule::Shaka => 0.0,
        }
    }

    /// Returns the level at which the segment is loaded instead, or `None` if the download
    /// continues. Only the rule of Shaka Player uses `abr`.
    pub fn choose_replacement_level(
        self,
        view: &PlayerView<'_>,
        partial: &PartialDownload,
        abr: &mut dyn AbrRule,
    ) -> Option<usize> {
        match self {
            AbandonRule::Never => None,
            AbandonRule::HlsJs => decide_abandonment_like_hls_js(view, partial),
            AbandonRule::DashJs => decide_abandonment_like_dash_js(view, partial),
            AbandonRule::Shaka => decide_abandonment_like_shaka(view, partial, abr),
        }
    }
}

/// Follows `_abandonRulesCheck` of hls.js 1.7, which never abandons a segment of the two lowest
/// levels.
fn decide_abandonment_like_hls_js(
    view: &PlayerView<'_>,
    partial: &PartialDownload,
) -> Option<usize> {
    let latency_s = view
        .estimate
        .map_or(DEFAULT_LATENCY_S, |estimate| estimate.latency_s);
    if partial.elapsed_s <= latency_s.max(view.segment_s / 2.0) {
        return None;
    }
    let measured = partial.throughput_bps();
    let bps = measured.or(view.estimate.map(|estimate| estimate.throughput_bps))?;
    let waits_s = if measured.is_some() { 0.0 } else { latency_s };
    let rest_s = waits_s + partial.missing_bits(view) / bps;
    if rest_s <= view.buffer_s {
        return None;
    }
    let load_s = |level: usize| latency_s + view.segment_s * view.bitrates[level] / bps;
    let in_time_s = view.buffer_s.min(view.segment_s + latency_s);
    let mut lower = (1..partial.level).rev();
    let fitting = lower.find(|level| load_s(*level) < in_time_s);
    let tried_s = load_s(fitting.unwrap_or(1));
    if partial.level < 2 || tried_s >= rest_s || tried_s > 10.0 * view.segment_s {
        return None;
    }
    // If the rest would take more than twice as long as the replacement segment, hls.js switches to
    // the lowest level.
    let level = fitting.unwrap_or(0);
    Some(if rest_s > 2.0 * tried_s { 0 } else { level })
}

/// Follows `AbandonRequestsRule` of dash.js 5.
fn decide_abandonment_like_dash_js(
    view: &PlayerView<'_>,
    partial: &PartialDownload,
) -> Option<usize> {
    let transfer_s = partial.elapsed_s - partial.latency_s?;
    let bps = partial.throughput_bps()?;
    let bitrate = view.bitrates[partial.level];
    let total_s = bitrate * view.segment_s / bps;
    let is_early = transfer_s <= DASH_JS_TRANSFER_MIN_S;
    let is_fast = total_s < DASH_JS_DURATIONS * view.segment_s;
    if is_early || is_fast || view.buffer_s > view.buffer_max_s {
        return None;
    }
    let above = view.bitrates.iter().skip(1).take(partial.level);
    let level = above.take_while(|bitrate| **bitrate <= bps).count();
    let instead_bits = view.bitrates[level] * view.segment_s;
    (level < partial.level && partial.missing_bits(view) > instead_bits).then_some(level)
}

/// Follows `shouldAbortCurrentRequest_` of Shaka Player 5, which also changes to higher levels.
fn decide_abandonment_like_shaka(
    view: &PlayerView<'_>,
    partial: &PartialDownload,
    abr: &mut dyn AbrRule,
) -> Option<usize> {
    partial.latency_s?;
    let level = abr.choose_level(view).level.min(view.bitrates.len() - 1);
    let instead_bits = view.bitrates[level] * view.segment_s;
    let measured = partial.throughput_bps();
    let bps = measured.or(view.estimate.map(|estimate| estimate.throughput_bps))?;
    let in_time = instead_bits / bps < view.buffer_s;
    let is_smaller = partial.missing_bits(view) > instead_bits;
    (level != partial.level && (in_time || is_smaller)).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::super::{FixedLevel, NetworkEstimate};
    use super::*;

    const BITRATES: [f64; 4] = [0.5e6, 1e6, 2e6, 4e6];

    /// The state of a player that plays the highest level (4 Mb/s), with two-second segments.
    fn view_with_buffer(buffer_s: f64) -> PlayerView<'static> {
        PlayerView {
            bitrates: &BITRATES,
            buffer_s,
            buffer_max_s: 18.0,
            segment_s: 2.0,
            chosen: 5,
            left: 20,
            last: Some(3),
            now_s: 30.0,
            estimate: Some(NetworkEstimate {
                throughput_bps: 5e6,
                latency_s: 0.05,
                harmonic_bps: 5e6,
            }),
        }
    }

    /// The partial download of a segment of level 3, `elapsed_s` seconds after the request. The
    /// segment arrives at `bps` bits per second.
    fn partial_at(bps: f64, elapsed_s: f64) -> PartialDownload {
        PartialDownload {
            level: 3,
            elapsed_s,
            latency_s: Some(0.05),
            bits: bps * (elapsed_s - 0.05),
        }
    }

    fn choose(rule: AbandonRule, buffer_s: f64, partial: PartialDownload) -> Option<usize> {
        let mut abr = FixedLevel::Lowest;
        rule.choose_replacement_level(&view_with_buffer(buffer_s), &partial, &mut abr)
    }

    #[test]
    fn hls_js_abandons_what_would_empty_the_buffer() {
        let rule = AbandonRule::HlsJs;
        // The complete segment has 8 Mb. At 0.6 Mb/s, the rest of the segment takes 12 s, but the
        // buffer lasts only 6 s.
        assert_eq!(choose(rule, 6.0, partial_at(0.6e6, 1.1)), Some(0));
        // The segment is not abandoned in three cases. The buffer lasts long enough. Less than half
        // of the segment's duration has passed. The segment arrives fast enough.
        assert_eq!(choose(rule, 15.0, partial_at(0.6e6, 1.1)), None);
        assert_eq!(choose(rule, 6.0, partial_at(0.6e6, 0.9)), None);
        assert_eq!(choose(rule, 6.0, partial_at(4e6, 1.1)), None);
        // The missing 3.9 Mb take 1.9 s at 2.1 Mb/s, longer than the 1.5 s in the buffer. The rule
        // chooses the highest level that arrives in time.
        assert_eq!(choose(rule, 1.5, partial_at(2.1e6, 2.0)), Some(1));
        // No byte has arrived, so the rule uses the throughput estimate, which is high enough (5
        // Mb/s).
        let nothing = PartialDownload {
            latency_s: None,
            bits: 0.0,
            ..partial_at(0.0, 1.1)
        };
        assert_eq!(choose(rule, 6.0, nothing), None);
    }

    #[test]
    fn hls_js_never_abandons_the_two_lowest_levels() {
        for level in [0, 1] {
            let partial = PartialDownload {
                level,
                ..partial_at(0.02e6, 3.0)
            };
            assert_eq!(choose(AbandonRule::HlsJs, 0.5, partial), None);
        }
    }

    #[test]
    fn dash_js_abandons_what_takes_much_longer_than_it_plays() {
        let rule = AbandonRule::DashJs;
        assert_eq!(choose(rule, 6.0, partial_at(1.2e6, 0.7)), Some(1));
        assert_eq!(choose(rule, 6.0, partial_at(0.1e6, 0.7)), Some(0));
        // The segment is not abandoned in three cases. The download takes 3.5 s, which is less than
        // 1.8 times the segment's duration. Less than half a second has passed since the first
        // byte. The buffer is full.
        assert_eq!(choose(rule, 6.0, partial_at(2.3e6, 0.7)), None);
        assert_eq!(choose(rule, 6.0, partial_at(1.2e6, 0.5)), None);
        assert_eq!(choose(rule, 19.0, partial_at(1.2e6, 0.7)), None);
        // Most of the segment has arrived, so its rest is smaller than the segment at the lower
        // level.
        assert_eq!(choose(rule, 6.0, partial_at(1.2e6, 6.0)), None);
    }

    #[test]
    fn shaka_abandons_when_its_rule_chooses_another_level() {
        let rule = AbandonRule::Shaka;
        assert_eq!(choose(rule, 6.0, partial_at(1e6, 0.7)), Some(0));
        // The segment at the lowest level would arrive after the buffer runs empty, and is larger
        // than the rest.
        assert_eq!(choose(rule, 0.1, partial_at(1e6, 7.9)), None);
        let chosen = PartialDownload {
            level: 0,
            ..partial_at(1e6, 0.7)
        };
        assert_eq!(choose(rule, 6.0, chosen), None);
        assert_eq!(choose(AbandonRule::Never, 0.1, partial_at(1e4, 9.0)), None);
    }
}
