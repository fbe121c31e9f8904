//! Settings, plan and state of a viewer.

use super::super::abr::AbandonRule;
use super::super::cmcd::CmcdFormat;
use super::super::device_profile::DeviceProfile;
use super::super::player_interface::Micros;
use media::manifest::read::ResourceRange;

/// Playback settings that all viewers of a run share.
#[derive(Debug, Clone)]
pub struct PlaybackSettings {
    /// Limit of the buffer, in seconds.
    pub buffer_max_s: f64,
    /// Seconds that each track must buffer before playback starts; at least one segment.
    pub start_s: f64,
    /// Seconds that each track must buffer after a stall.
    pub resume_s: f64,
    /// The level of the first segment.
    pub start_level: StartLevel,
    /// The rule by which a slow segment is abandoned for one of a lower level.
    pub abandon: AbandonRule,
    /// Limit on how far one track is buffered ahead of the other.
    pub track_sync: TrackSync,
    /// Retries of a failed request, with a delay that starts at half a second and doubles.
    pub retries: u32,
    /// CMCD style, if the viewer reports to the server.
    pub cmcd: Option<CmcdFormat>,
}

/// The level of the first segment. Rules that ignore the network choose it themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartLevel {
    /// The choice of the bitrate rule, usually the lowest level.
    RuleChoice,
    /// The highest level whose bitrate is at most this throughput, in bits per second.
    Throughput(f64),
    /// The highest level at an assumed throughput: the bitrate of the manifest's first variant,
    /// limited to these bounds in bits per second.
    FirstListed {
        /// The smallest throughput assumed.
        bps_min: f64,
        /// The largest throughput assumed.
        bps_max: f64,
    },
}

/// Limit on how far one track is buffered ahead of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrackSync {
    /// Each track is buffered as far as the buffer allows.
    #[default]
    Independent,
    /// Audio requests no segment while it is buffered further than the end of the video segment
    /// that is being received.
    HlsJs,
    /// Audio requests no segment once it is buffered one second further than video, but it always
    /// buffers at least one segment.
    DashJs,
    /// Neither track is a segment or more ahead of the other.
    Shaka,
}

impl Default for PlaybackSettings {
    fn default() -> PlaybackSettings {
        PlaybackSettings {
            buffer_max_s: 30.0,
            start_s: 0.0,
            resume_s: 0.0,
            start_level: StartLevel::RuleChoice,
            abandon: AbandonRule::Never,
            track_sync: TrackSync::Independent,
            retries: 3,
            cmcd: None,
        }
    }
}

/// The plan of one viewer, made in advance.
#[derive(Debug, Clone)]
pub struct ViewerPlan {
    /// The manifest.
    pub manifest: ResourceRange,
    /// The device.
    pub device: DeviceProfile,
    /// The latest time at which the viewer leaves.
    pub leave_at: Micros,
    /// Microseconds without video after which the viewer gives up.
    pub patience: Option<Micros>,
    /// Times of seeks, and their targets as a share of the title; in order.
    pub seeks: Vec<(Micros, f64)>,
    /// Session ID.
    pub session: u128,
}

/// The reason for the end of a session.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// The title ended.
    Finished,
    /// The viewer left as planned.
    Left,
    /// The viewer gave up waiting.
    GaveUp,
    /// A required resource was unavailable.
    Failed,
    /// The run ended.
    Stopped,
}

/// A snapshot of a player, for live figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayerSnapshot {
    /// Time of the snapshot.
    pub at: Micros,
    /// Buffered microseconds.
    pub buffer: Micros,
    /// Video is playing.
    pub playing: bool,
    /// Playback has stalled.
    pub stalled: bool,
    /// Bitrate of the last chosen level, in bits per second.
    pub bps: f64,
}
