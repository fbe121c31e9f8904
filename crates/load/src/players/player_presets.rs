//! Defaults of common players, from their own documentation.
//!
//! A preset sets what our viewer has in common with the player: the rule, the start level and the
//! buffer thresholds. It does not make both alike: each player has its own rule, and browsers add
//! their own start-up time.

/// The settings of a player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayerPreset {
    /// Name on the command line.
    pub name: &'static str,
    /// The closest rule, as `--abr`.
    pub rule: &'static str,
    /// Limit of the buffer, in seconds.
    pub buffer_max_s: f64,
    /// Seconds that each track must buffer before playback starts; at least one segment.
    pub start_s: f64,
    /// Seconds that each track must buffer after a stall.
    pub resume_s: f64,
    /// Throughput that the player assumes for its first choice, in bits per second; none starts
    /// with the rule's own choice, the lowest level.
    pub start_bps: Option<f64>,
}

/// All presets.
pub const PLAYER_PRESETS: [PlayerPreset; 3] = [HLS_JS, DASH_JS, SHAKA];

/// hls.js 1.7.4: `maxBufferLength` 30 s, and `abrEwmaDefaultEstimate` 500 kb/s times
/// `abrBandWidthFactor` 0.95. It estimates throughput by moving averages (`abrEwmaFastVoD`,
/// `abrEwmaSlowVoD`). The browser decides when playback starts and resumes.
const HLS_JS: PlayerPreset = PlayerPreset {
    name: "hls.js",
    rule: "throughput",
    buffer_max_s: 30.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_bps: Some(475_000.0),
};

/// dash.js 5.2.1: `bufferTimeDefault` 18 s, and BOLA and throughput in turn
/// (`abr.rules.bolaRule` and `throughputRule`). `abr.initialBitrate` is -1, which means the measured
/// throughput, and there is none at the start.
const DASH_JS: PlayerPreset = PlayerPreset {
    name: "dash.js",
    rule: "dynamic",
    buffer_max_s: 18.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_bps: None,
};

/// Shaka Player 5.2.12: `streaming.bufferingGoal` 10 s, `streaming.rebufferingGoal` 0 s, and
/// `abr.defaultBandwidthEstimate` 1 Mb/s times `abr.bandwidthDowngradeTarget` 0.95.
const SHAKA: PlayerPreset = PlayerPreset {
    name: "shaka",
    rule: "throughput",
    buffer_max_s: 10.0,
    start_s: 0.0,
    resume_s: 0.0,
    start_bps: Some(950_000.0),
};

/// The name is not that of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown player; use hls.js, dash.js or shaka")]
pub struct UnknownPlayer;

impl PlayerPreset {
    /// Returns the preset of a name.
    ///
    /// # Errors
    /// There is none.
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
            assert!(AbrSetting::parse(preset.rule).is_ok(), "{}", preset.name);
            assert_eq!(PlayerPreset::find_by_name(preset.name), Ok(preset));
        }
        assert!(PlayerPreset::find_by_name("vlc").is_err());
    }
}
