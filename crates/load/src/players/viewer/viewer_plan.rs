//! The settings of all viewers, the plan of one viewer, and snapshots of a player.

use super::super::abr::AbandonRule;
use super::super::cmcd::CmcdFormat;
use super::super::device_profile::DeviceProfile;
use super::super::player_interface::Micros;
use media::manifest::read::ResourceRange;

/// Playback settings that all viewers of a run share.
#[derive(Debug, Clone)]
pub struct PlaybackSettings {
    /// Maximum length of the buffered media, in seconds.
    pub buffer_max_s: f64,
    /// Seconds of video and audio that must be buffered before playback starts. At least one
    /// segment of each must be buffered.
    pub start_s: f64,
    /// Seconds of video and audio that must be buffered before playback resumes after a stall.
    pub resume_s: f64,
    /// The level of the first segment.
    pub start_level: StartLevel,
    /// The rule for abandoning a slow segment and requesting the segment at another level.
    pub abandon: AbandonRule,
    /// The limit on how far audio and video are buffered ahead of each other.
    pub track_sync: TrackSync,
    /// Maximum number of retries of a failed request. The delay before the first retry is half a
    /// second, and doubles for each further retry.
    pub retries: u32,
    /// The format of the viewer's CMCD reports; none if the viewer sends no CMCD.
    pub cmcd: Option<CmcdFormat>,
}

/// The level of the first segment. Bitrate rules that ignore the network also ignore this setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartLevel {
    /// The level that the bitrate rule chooses. This is usually the lowest level.
    RuleChoice,
    /// The highest level whose bitrate is at most this throughput, in bits per second. If there is
    /// no such level, the lowest level.
    Throughput(f64),
    /// The highest level whose bitrate is at most an assumed throughput. The assumed throughput is
    /// the bitrate of the manifest's first variant, limited to the following bounds.
    FirstListed {
        /// The smallest assumed throughput, in bits per second.
        bps_min: f64,
        /// The largest assumed throughput, in bits per second.
        bps_max: f64,
    },
}

/// The limit on how far audio and video are buffered ahead of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrackSync {
    /// There is no limit, so each track fills its own buffer.
    #[default]
    Independent,
    /// Audio requests no segment while its buffer ends after the video segment that is being
    /// received.
    HlsJs,
    /// Audio requests no segment while its buffer ends at least one second after the video buffer.
    /// Audio always buffers at least one segment.
    DashJs,
    /// A track requests no segment while its buffer ends at least one segment after the buffer of
    /// the other track.
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
    /// The time at which the viewer leaves, if the session has not ended before.
    pub leave_at: Micros,
    /// Microseconds that the viewer waits for playback to start or resume before giving up; none if
    /// the viewer never gives up.
    pub patience: Option<Micros>,
    /// The seeks, in order: the time of each seek, and its target as a share of the title (0 to 1).
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
    /// The title was played to its end.
    Finished,
    /// The viewer left as planned.
    Left,
    /// The viewer gave up waiting.
    GaveUp,
    /// A required resource was unavailable.
    Failed,
    /// The run ended before the session.
    Stopped,
}

/// A snapshot of a player, for the live statistics.
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
    /// Bitrate of the level of the last received segment, in bits per second.
    pub bps: f64,
}
