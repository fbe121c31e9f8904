//! Emulates a population of viewers over the network. Each generator thread runs one task per
//! place, and each viewer has a separate HTTP client. A place is occupied by one viewer after
//! another.
//!
//! The result is a `RunResult` of the requests, as for `headwater load rate`, and the
//! [`PopulationStats`] of the viewers. A viewer's requests depend on earlier responses and have no
//! schedule. The generator itself can react late to a timer or a response. This lateness is
//! measured, and the report warns if the lateness is too large.

mod collector;
mod document_cache;
mod in_flight_fetch;
mod player_thread;
mod population_stats;
mod thread_stats;
mod viewer_session;

pub use collector::{PopulationProgress, run_viewer_plan};
pub use document_cache::DocumentCache;
pub use population_stats::{
    LATE_P99_MAX_MS, PlayerRecord, PopulationSample, PopulationStats, ViewerTrace,
};

use super::population::{Population, ViewerArrivals};
use super::range_consumer::ConsumerSettings;
use super::text_choice::TextPreference;
use super::title_ladder::AudioPreference;
use super::viewer::PlaybackSettings;
use crate::client::Dialer;
use std::sync::Arc;
use std::time::Duration;

/// The kind of player in each place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlayerKind {
    /// A viewer with a media clock.
    Viewer,
    /// The worker of document 2 (docs/findings.md), which requests one level.
    Sequence,
    /// The consumer of document 3 (docs/document-3.md), which requests ranges of one MP4 file.
    Consumer(ConsumerSettings),
}

/// The parameters of a run of viewers.
#[derive(Debug)]
pub struct ViewerRunPlan {
    /// The viewers' behavior.
    pub population: Population,
    /// Arrival times of the viewers.
    pub arrivals: ViewerArrivals,
    /// The number of viewers as the user typed it, and the name of the bitrate rule.
    pub offered: String,
    /// The kind of players.
    pub mode: PlayerKind,
    /// Playback settings of all viewers.
    pub settings: Arc<PlaybackSettings>,
    /// Preferred audio.
    pub audio_preference: AudioPreference,
    /// Subtitles that viewers show.
    pub text_preference: TextPreference,
    /// Length of the run.
    pub duration: Duration,
    /// Opens the connections of all viewers.
    pub dialer: Dialer,
    /// Number of generator threads.
    pub threads: usize,
}

impl ViewerRunPlan {
    /// Returns the start and end of each step, in seconds since the start of the run. Each step has
    /// separate results.
    pub fn measured_steps(&self) -> Vec<[f64; 2]> {
        let starts = self.arrivals.steps.iter().map(|(at, _)| *at as f64 / 1e6);
        let ends = starts.clone().skip(1).chain([self.duration.as_secs_f64()]);
        starts.zip(ends).map(|(start, end)| [start, end]).collect()
    }
}
