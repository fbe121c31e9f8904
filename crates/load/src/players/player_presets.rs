//! Defaults of common players, from the documentation and source code of these players.
//!
//! A preset sets the bitrate rule, the start level, the buffer thresholds, the rule for abandoning
//! segments, and how far audio and video are buffered ahead of each other. Real players also need
//! start-up time in the browser, which presets do not include.

use super::abr::AbandonRule;
use super::viewer::{StartLevel, TrackSync};

/// The settings of a player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayerPreset {
    /// Name on the command line.
    pub name: &'static str,
    /// The bitrate rule that is most similar to the player's own rule, as a value of `--abr`.
    pub rule: &'static str,
    /// Maximum length of the buffered media, in seconds.
    pub buffer_max_s: f64,
    /// Seconds of video and audio that must be buffered before playback starts. At least one
    /// segment of each must be buffered.
    pub start_s: f64,
    /// Seconds of video and audio that must be buffered before playback resumes after a stall.
    pub resume_s: f64,
    /// The level of the first segment.
    pub start_level: StartLevel,
    /// The rule by which a slow segment is abandoned.
    pub abandon: AbandonRule,
    /// Limit on how far audio and video are buffered ahead of each other.
    pub track_sync: TrackSync,
}

/// All presets.
pub const PLAYER_PRESETS: [PlayerPreset; 4] = [HLS_JS, DASH_JS, SHAKA, NONE];

/// hls.js 1.7.4, where `maxBufferLength` is 30 s. The first throughput estimate is the bitrate of
/// the first variant, but at least `abrEwmaDefaultEstimate` (500 kb/s) and at most
/// `abrEwmaDefaultEstimateMax` (5 Mb/s). The browser decides when playback starts and resumes.
const HLS_JS: PlayerPreset = PlayerPreset {
    name: "hls.js",
    rule: "hls.js",
    buffer_max_s: 30.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_level: StartLevel::FirstListed {
        bps_min: 0.5e6,
        bps_max: 5e6,
    },
    abandon: AbandonRule::HlsJs,
    track_sync: TrackSync::HlsJs,
};

/// dash.js 5.2.1, where `bufferTimeDefault` is 18 s. It switches between BOLA and the throughput
/// rule (`abr.rules.bolaRule` and `throughputRule`). `abr.initialBitrate` is -1, so dash.js starts
/// with 1 Mb/s if no throughput has been measured.
const DASH_JS: PlayerPreset = PlayerPreset {
    name: "dash.js",
    rule: "dynamic",
    buffer_max_s: 18.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_level: StartLevel::Throughput(1e6),
    abandon: AbandonRule::DashJs,
    track_sync: TrackSync::DashJs,
};

/// Shaka Player 5.2.12, where `streaming.bufferingGoal` is 10 s and `streaming.rebufferingGoal` is
/// 0 s. Chromium at first reports a throughput of 1.55 Mb/s (`abr.useNetworkInformation`). Shaka
/// Player starts with 95 % of this throughput (`abr.bandwidthDowngradeTarget`).
const SHAKA: PlayerPreset = PlayerPreset {
    name: "shaka",
    rule: "shaka",
    buffer_max_s: 10.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_level: StartLevel::Throughput(1.47e6),
    abandon: AbandonRule::Shaka,
    track_sync: TrackSync::Shaka,
};

/// No particular player. The bitrate rule chooses the first level, tracks are buffered
/// independently, and no segment is abandoned.
const NONE: PlayerPreset = PlayerPreset {
    name: "none",
    rule: "dynamic",
    buffer_max_s: 30.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_level: StartLevel::RuleChoice,
    abandon: AbandonRule::Never,
    track_sync: TrackSync::Independent,
};

/// No preset has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown player; use hls.js, dash.js, shaka or none")]
pub struct UnknownPlayer;

impl PlayerPreset {
    /// Returns the preset with this name.
    ///
    /// # Errors
    /// No preset has this name.
    pub fn find_by_name(name: &str) -> Result<PlayerPreset, UnknownPlayer> {
        let found = PLAYER_PRESETS
            .into_iter()
            .find(|preset| preset.name == name);
        found.ok_or(UnknownPlayer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::players::population::AbrSetting;

    #[test]
    fn presets_have_a_known_rule_and_are_found_by_name() {
        for preset in PLAYER_PRESETS {
            assert!(
                AbrSetting::parse_abr_setting(preset.rule).is_ok(),
                "{}",
                preset.name
            );
            assert_eq!(PlayerPreset::find_by_name(preset.name), Ok(preset));
        }
        assert!(PlayerPreset::find_by_name("vlc").is_err());
    }
}
