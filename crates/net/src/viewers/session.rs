//! The session of one viewer, with the latest values that the viewer's player reported.

use std::net::IpAddr;
use std::time::Instant;

use crate::WeakConnection;
use crate::cmcd::{CmcdData, CmcdItem, CmcdValue};

use super::client_network::ClientNetwork;
use super::stall_count::StallCount;
use super::title_name::{bound_text, find_title};

/// Maximum number of characters of a text from a report, such as the pathway or an error code.
const TEXT_CHARS_MAX: usize = 64;
/// Greatest number that is accepted from a report. No real bitrate, buffer length or delay is
/// greater.
const NUMBER_MAX: f64 = 1e9;
/// Maximum start-up time in milliseconds (ten minutes). A longer time is ignored.
const START_UP_MS_MAX: f64 = 600_000.0;

/// The way in which a report was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportMode {
    /// With a request for media.
    Request,
    /// In a line of `POST /cmcd`.
    Event,
}

/// A report with the facts of its request.
pub(super) struct ViewerReport<'a> {
    pub data: &'a CmcdData,
    pub mode: ReportMode,
    /// Path of the requested object; empty for events.
    pub path: &'a str,
    pub client: IpAddr,
    pub connection: WeakConnection,
    pub now: Instant,
}

/// State of the player (`sta`, CTA-5004-B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PlayState {
    /// The player has reported no state. CMCD version 1 has no key for the state.
    #[default]
    Unknown,
    Starting,
    Playing,
    Seeking,
    Rebuffering,
    Paused,
    Waiting,
    Ended,
    Failed,
    Quit,
    Preloading,
}

/// Values that a report adds to the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ReportMetricValues {
    pub stalls: u64,
    pub errors: u64,
    /// The start-up time. This value is added only once per session, by the report from which the
    /// server learns or derives the time.
    pub start_up_ms: Option<f64>,
    /// The bitrate of a requested video segment, or of the time interval of an event `t`.
    pub bitrate_kbps: Option<f64>,
    pub buffer_ms: Option<f64>,
}

/// A session in the table. A session takes at most about 2 KiB of memory.
#[derive(Debug)]
pub(super) struct ViewerSession {
    pub title: Option<String>,
    pub network: ClientNetwork,
    pub pathway: Option<String>,
    pub state: PlayState,
    pub first_seen: Instant,
    pub last_seen: Instant,
    pub stalls: StallCount,
    pub start_up_ms: Option<f64>,
    pub bitrate_kbps: Option<f64>,
    pub top_bitrate_kbps: Option<f64>,
    pub buffer_ms: Option<f64>,
    pub throughput_kbps: Option<f64>,
    pub dropped_frames: Option<f64>,
    pub errors: u64,
    pub last_error: Option<String>,
    pub reports: u64,
    /// The connection of the latest request for media. Before the first such request, the
    /// connection of the latest event.
    pub connection: WeakConnection,
    has_requests: bool,
    has_event_states: bool,
    has_played: bool,
    starting_since: Option<f64>,
    latest_timestamp: f64,
}

impl ViewerSession {
    pub(super) fn new(report: &ViewerReport<'_>) -> ViewerSession {
        ViewerSession {
            title: None,
            network: report.client.into(),
            pathway: None,
            state: PlayState::default(),
            first_seen: report.now,
            last_seen: report.now,
            stalls: StallCount::default(),
            start_up_ms: None,
            bitrate_kbps: None,
            top_bitrate_kbps: None,
            buffer_ms: None,
            throughput_kbps: None,
            dropped_frames: None,
            errors: 0,
            last_error: None,
            reports: 0,
            connection: report.connection.clone(),
            has_requests: false,
            has_event_states: false,
            has_played: false,
            starting_since: None,
            latest_timestamp: 0.0,
        }
    }

    /// Applies a report, and returns what it adds to the metrics.
    pub(super) fn apply_report(&mut self, report: &ViewerReport<'_>) -> ReportMetricValues {
        let before = (self.stalls.stalls_so_far(), self.errors, self.start_up_ms);
        self.last_seen = report.now;
        self.reports += 1;
        self.network = report.client.into();
        self.update_connection(report);
        self.update_texts(report);
        self.update_numbers(report.data);
        self.update_state(report);
        self.stalls.count_reported_stalls(report);
        self.count_error(report.data);
        ReportMetricValues {
            stalls: self.stalls.stalls_so_far().saturating_sub(before.0),
            errors: self.errors - before.1,
            start_up_ms: self.start_up_ms.filter(|_| before.2.is_none()),
            bitrate_kbps: self.sampled_bitrate(report),
            buffer_ms: read_plausible_number(report.data, "bl"),
        }
    }

    fn update_connection(&mut self, report: &ViewerReport<'_>) {
        let is_media = report.mode == ReportMode::Request;
        self.has_requests |= is_media;
        if is_media || !self.has_requests {
            self.connection = report.connection.clone();
        }
    }

    fn update_texts(&mut self, report: &ViewerReport<'_>) {
        let is_new = self.title.is_none() || report.data.string_value("cid").is_some();
        if let Some(title) = is_new
            .then(|| find_title(report.data, report.path))
            .flatten()
        {
            self.title = Some(title);
        }
        if let Some(pathway) = report.data.string_value("cdn") {
            self.pathway = Some(bound_text(pathway, TEXT_CHARS_MAX));
        }
    }

    fn update_numbers(&mut self, data: &CmcdData) {
        let is_main_media = can_be_video(data);
        let update = |key, to: &mut Option<f64>| *to = read_plausible_number(data, key).or(*to);
        update("mtp", &mut self.throughput_kbps);
        update("dfa", &mut self.dropped_frames);
        if is_main_media {
            update("br", &mut self.bitrate_kbps);
            update("tb", &mut self.top_bitrate_kbps);
            update("bl", &mut self.buffer_ms);
        }
        self.start_up_ms = self.start_up_ms.or_else(|| reported_startup_ms(data));
    }

    /// Updates the state of the player. Requests also report the state, but they arrive earlier
    /// than batched events. Once a player has reported its state in an event, requests no longer
    /// change the state.
    fn update_state(&mut self, report: &ViewerReport<'_>) {
        let Some(state) = report
            .data
            .string_value("sta")
            .and_then(PlayState::from_token)
        else {
            return;
        };
        let timestamp = report
            .data
            .numeric_value("ts")
            .unwrap_or(self.latest_timestamp);
        match report.mode {
            ReportMode::Request if self.has_event_states => return,
            ReportMode::Event if timestamp < self.latest_timestamp => return,
            ReportMode::Request => {}
            ReportMode::Event => self.has_event_states = true,
        }
        self.latest_timestamp = timestamp;
        self.has_played |= state == PlayState::Playing;
        match state {
            // Before the first frame is shown, an empty buffer is part of the start-up.
            PlayState::Rebuffering if self.has_played => self.stalls.start_stall(report),
            PlayState::Rebuffering => {}
            _ => self.stalls.end_stall(report),
        }
        self.derive_startup_time(state, report);
        self.state = state;
    }

    /// Derives the start-up time from the states, for a player that does not report the time
    /// itself.
    fn derive_startup_time(&mut self, state: PlayState, report: &ViewerReport<'_>) {
        let Some(timestamp) = report.data.numeric_value("ts") else {
            return;
        };
        match (state, self.starting_since) {
            (PlayState::Starting, None) => self.starting_since = Some(timestamp),
            (PlayState::Playing, Some(since)) if self.start_up_ms.is_none() => {
                let ms = timestamp - since;
                self.start_up_ms = (0.0..=START_UP_MS_MAX).contains(&ms).then_some(ms);
            }
            _ => {}
        }
    }

    fn count_error(&mut self, data: &CmcdData) {
        if data.string_value("e") != Some("e") {
            return;
        }
        self.errors += 1;
        let code = data.list_items("ec").first().map(|item| &item.value);
        self.last_error = Some(match code {
            Some(CmcdValue::Text(code)) => bound_text(code, TEXT_CHARS_MAX),
            Some(CmcdValue::Number(code)) => code.to_string(),
            _ => "unknown".to_owned(),
        });
    }

    /// Returns the bitrate that a report adds to the metrics. Only reports about video segments and
    /// about time intervals add a bitrate, because each segment or interval covers about the same
    /// time. Other reports would distort the distribution.
    fn sampled_bitrate(&self, report: &ViewerReport<'_>) -> Option<f64> {
        let is_sample = match report.mode {
            ReportMode::Request => matches!(report.data.string_value("ot"), Some("v" | "av")),
            ReportMode::Event => !self.has_requests && report.data.string_value("e") == Some("t"),
        };
        is_sample
            .then(|| read_plausible_number(report.data, "br"))
            .flatten()
    }
}

impl PlayState {
    fn from_token(token: &str) -> Option<PlayState> {
        Some(match token {
            "s" => PlayState::Starting,
            "p" => PlayState::Playing,
            "k" => PlayState::Seeking,
            "r" => PlayState::Rebuffering,
            "a" => PlayState::Paused,
            "w" => PlayState::Waiting,
            "e" => PlayState::Ended,
            "f" => PlayState::Failed,
            "q" => PlayState::Quit,
            "d" => PlayState::Preloading,
            _ => return None,
        })
    }

    /// Returns the name that pages and JSON use for the state.
    pub(super) fn name(self) -> &'static str {
        match self {
            PlayState::Unknown => "unknown",
            PlayState::Starting => "starting",
            PlayState::Playing => "playing",
            PlayState::Seeking => "seeking",
            PlayState::Rebuffering => "rebuffering",
            PlayState::Paused => "paused",
            PlayState::Waiting => "waiting",
            PlayState::Ended => "ended",
            PlayState::Failed => "failed",
            PlayState::Quit => "quit",
            PlayState::Preloading => "preloading",
        }
    }

    /// Returns false if playback has ended, has failed or was stopped by the viewer.
    pub(super) fn is_watching(self) -> bool {
        !matches!(self, PlayState::Ended | PlayState::Failed | PlayState::Quit)
    }
}

/// Returns the start-up time that a report contains. A player does not know this time before
/// playback starts, but dash.js 5.2 already reports a few milliseconds. A value in a report
/// with the state starting or preloading is therefore ignored.
fn reported_startup_ms(data: &CmcdData) -> Option<f64> {
    let is_starting = matches!(data.string_value("sta"), Some("s" | "d"));
    let ms = read_plausible_number(data, "msd").filter(|ms| *ms <= START_UP_MS_MAX);
    ms.filter(|_| !is_starting)
}

/// Returns whether the bitrate and the buffer length in a report are shown for the session. Values
/// of audio, text, keys, init segments and other objects are not shown.
fn can_be_video(data: &CmcdData) -> bool {
    !matches!(
        data.string_value("ot"),
        Some("a" | "c" | "tt" | "k" | "i" | "o")
    )
}

/// Returns the numeric value of a key, if the value is not negative and not too large. If the key
/// has a list of values, the value for video is preferred.
fn read_plausible_number(data: &CmcdData, key: &str) -> Option<f64> {
    let is_main = |item: &&CmcdItem| item.has_parameter("v") || item.has_parameter("av");
    let of_video = data.list_items(key).iter().find(is_main);
    let number = match of_video.map(|item| &item.value) {
        Some(CmcdValue::Number(number)) => Some(*number),
        _ => data.numeric_value(key),
    };
    number.filter(|number| (0.0..=NUMBER_MAX).contains(number))
}
