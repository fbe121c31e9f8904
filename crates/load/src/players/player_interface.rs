//! The interface of all players, which return requests and receive results.

use super::cmcd::CmcdReport;
use super::title_ladder::TitleLadder;
use media::manifest::read::{ResourceRange, SegmentList};
use std::sync::Arc;

/// Microseconds since the run began.
pub type Micros = u64;

/// A player that does no IO and has no clock.
pub trait Player: Send {
    /// Returns the next action. The caller polls again after each action, until the action is
    /// [`PlayerAction::Wait`] or [`PlayerAction::Done`]. After [`PlayerAction::Wait`], the caller
    /// polls again when a result arrives or the time is reached.
    fn poll(&mut self, now: Micros) -> PlayerAction;

    /// Receives the result of a fetch.
    fn handle_result(&mut self, now: Micros, id: u32, result: FetchResult);

    /// Receives the progress of a fetch in flight. The caller reports the progress before each
    /// [`Player::poll`].
    fn record_progress(&mut self, _id: u32, _progress: FetchProgress) {}
}

/// The next action of a player.
#[derive(Debug)]
pub enum PlayerAction {
    /// Send this request.
    Fetch(Box<MediaFetch>),
    /// Cancel a fetch.
    Cancel(u32),
    /// Wait until this time or the next result.
    Wait(Micros),
    /// The session has ended.
    Done,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchPurpose {
    /// The multivariant playlist or the MPD.
    Manifest,
    /// A media playlist.
    Playlist,
    /// A `sidx` box, or the `moov` box of an MP4 file.
    Index,
    /// An init segment.
    Init,
    /// A segment of video, alone or with its audio.
    Video,
    /// A segment of audio.
    Audio,
    /// A segment of subtitles or captions.
    Text,
    /// A byte range of a file.
    Range,
}

impl FetchPurpose {
    /// Returns the name of the purpose in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            FetchPurpose::Manifest => "manifest",
            FetchPurpose::Playlist => "playlist",
            FetchPurpose::Index => "index",
            FetchPurpose::Init => "init",
            FetchPurpose::Video => "video",
            FetchPurpose::Audio => "audio",
            FetchPurpose::Text => "text",
            FetchPurpose::Range => "range",
        }
    }

    /// Returns whether the response body is parsed. Other bodies are discarded.
    pub fn is_document(self) -> bool {
        matches!(
            self,
            FetchPurpose::Manifest | FetchPurpose::Playlist | FetchPurpose::Index
        )
    }
}

/// A request of a player.
#[derive(Debug)]
pub struct MediaFetch {
    /// Number of the request within the session, which identifies the result.
    pub id: u32,
    /// The purpose.
    pub purpose: FetchPurpose,
    /// The URL and byte range.
    pub resource: ResourceRange,
    /// Format of the requested document.
    pub format: DocumentFormat,
    /// CMCD report for the server.
    pub cmcd: Option<Box<CmcdReport>>,
}

/// The format of a document.
#[derive(Debug, Clone, Default)]
pub enum DocumentFormat {
    /// A manifest. The parser detects its format from the content.
    #[default]
    Manifest,
    /// The segment index (`sidx`) of this source.
    Index(Box<media::manifest::read::SidxSource>),
    /// The start of an MP4 file.
    Movie,
    /// The response is not a document.
    Discard,
}

/// A parsed document, shared by many players.
#[derive(Debug, Clone)]
pub enum ParsedDocument {
    /// A title, described by a multivariant playlist or an MPD.
    TitleLadder(Arc<TitleLadder>),
    /// Segments of a media playlist or an index.
    Segments(Arc<SegmentList>),
    /// Size and duration of an MP4 file.
    File {
        /// Size in bytes.
        bytes: u64,
        /// Duration in microseconds.
        duration_us: u64,
    },
}

/// The progress of a fetch in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchProgress {
    /// Body bytes received.
    pub bytes: u64,
    /// Arrival time of the first body byte.
    pub first_byte: Option<Micros>,
}

/// The result of a fetch.
#[derive(Debug, Clone, Default)]
pub struct FetchResult {
    /// Whether the response was complete and successful, and its document, if any, could be parsed.
    pub ok: bool,
    /// Number of body bytes received.
    pub bytes: u64,
    /// Time at which the request was sent; `None` if no request was sent.
    pub sent: Option<Micros>,
    /// Arrival time of the first byte.
    pub first_byte: Option<Micros>,
    /// The parsed document, if the response is a document.
    pub document: Option<ParsedDocument>,
}
