//! Adaptive bitrate rules, which choose the level of the next segment.
//!
//! A rule receives the player's state (buffer, measurements) and returns a [`LevelDecision`].
//! Bitrates are in bits per second, and times are in seconds.

mod abandonment;
mod bba;
mod bola;
mod dynamic;
mod ewma;
mod fixed_level;
mod hls_js;
mod mpc;
mod network_estimate;
#[cfg(test)]
mod playback_simulator;
#[cfg(test)]
mod sabre_comparison;
mod shaka;
mod throughput;

pub use abandonment::{AbandonRule, PartialDownload};
pub use bba::BbaRule;
pub use bola::BolaRule;
pub use dynamic::DynamicRule;
pub use fixed_level::{FixedLevel, RandomLevel};
pub use hls_js::HlsJsRule;
pub use mpc::RobustMpc;
pub use network_estimate::{DownloadSample, EwmaEstimator, NetworkEstimate};
pub use shaka::ShakaRule;
pub use throughput::ThroughputRule;

/// The part of a player's state that a rule may use.
#[derive(Debug, Clone, Copy)]
pub struct PlayerView<'a> {
    /// Bitrates of the allowed levels, in ascending order. The list is never empty.
    pub bitrates: &'a [f64],
    /// Buffered seconds.
    pub buffer_s: f64,
    /// Limit of the buffer, in seconds.
    pub buffer_max_s: f64,
    /// Duration of the next segment, in seconds.
    pub segment_s: f64,
    /// Number of segments chosen since the start, or since the last seek.
    pub chosen: usize,
    /// Number of remaining segments, including the next segment.
    pub left: usize,
    /// The level of the last segment.
    pub last: Option<usize>,
    /// Seconds since the run began.
    pub now_s: f64,
    /// Network estimate; `None` before the first segment.
    pub estimate: Option<NetworkEstimate>,
}

/// The choice of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelDecision {
    /// The level.
    pub level: usize,
    /// Seconds to wait before the request.
    pub wait_s: f64,
}

impl From<usize> for LevelDecision {
    fn from(level: usize) -> LevelDecision {
        LevelDecision { level, wait_s: 0.0 }
    }
}

/// An adaptive bitrate rule.
pub trait AbrRule: std::fmt::Debug + Send {
    /// Chooses the level of the next segment.
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision;

    /// Records a downloaded segment. `view` is the state after the download, and `took_s` is the
    /// download time in seconds.
    fn record_download(&mut self, _view: &PlayerView<'_>, _level: usize, _took_s: f64) {}

    /// Records the throughput of a segment, or of the part of a segment that was received since the
    /// last sample.
    fn record_sample(&mut self, _sample: &DownloadSample) {}

    /// Assumes at most this throughput, in bits per second, until the next sample.
    fn assume_throughput(&mut self, _bps: f64) {}

    /// Returns whether audio segments are also used as throughput samples.
    fn uses_audio_samples(&self) -> bool {
        false
    }

    /// Returns whether the choice depends on the network. If the choice does not depend on the
    /// network, no segment is abandoned, and the rule also chooses the level of the first segment.
    fn is_adaptive(&self) -> bool {
        true
    }

    /// Records the seconds in which no segment was requested because the buffer was full.
    fn record_idle(&mut self, _seconds: f64) {}

    /// Resets the rule after a seek.
    fn reset_after_seek(&mut self) {}
}

/// Returns the highest level whose segments download at least as fast as they play, at this
/// throughput and latency. If no level is sustainable, returns the lowest level.
fn sustainable_level(view: &PlayerView<'_>, throughput_bps: f64, latency_s: f64) -> usize {
    let fits =
        |bitrate: f64| latency_s + view.segment_s * bitrate / throughput_bps <= view.segment_s;
    let above = view
        .bitrates
        .iter()
        .skip(1)
        .take_while(|bitrate| fits(**bitrate));
    above.count()
}
