//! What all players have in common: they say what to ask for, and are told how it went.

use super::cmcd::Facts;
use super::stream::Stream;
use media::manifest::read::{Part, Segments};
use std::sync::Arc;

/// Microseconds since the run began.
pub type Micros = u64;

/// A player that does no IO and has no clock.
pub trait Player: Send {
    /// What to do now. Asked again and again until it says [`Step::Wait`] or [`Step::Done`], and
    /// after each answer.
    fn poll(&mut self, now: Micros) -> Step;

    /// How a fetch went.
    fn handle(&mut self, now: Micros, id: u32, answer: Answer);
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Ask for this.
    Ask(Box<Fetch>),
    /// Forget a fetch: its answer is not wanted any more.
    Cancel(u32),
    /// Nothing until then, or until an answer comes.
    Wait(Micros),
    /// It is over.
    Done,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The multivariant playlist or the MPD.
    Manifest,
    /// A media playlist.
    Playlist,
    /// A `sidx`, or an MP4's `moov`.
    Index,
    /// An init segment.
    Init,
    /// A segment of video, alone or with its audio.
    Video,
    /// A segment of audio.
    Audio,
    /// A range of a file.
    Range,
}

impl What {
    /// In records and reports.
    pub fn name(self) -> &'static str {
        match self {
            What::Manifest => "manifest",
            What::Playlist => "playlist",
            What::Index => "index",
            What::Init => "init",
            What::Video => "video",
            What::Audio => "audio",
            What::Range => "range",
        }
    }

    /// Whether the body is looked at; else it is discarded.
    pub fn is_document(self) -> bool {
        matches!(self, What::Manifest | What::Playlist | What::Index)
    }
}

/// One request.
#[derive(Debug)]
pub struct Fetch {
    /// Its number with its player; answers name it.
    pub id: u32,
    /// What it is for.
    pub what: What,
    /// Where the bytes lie.
    pub part: Part,
    /// How a document is to be understood, where the address alone does not say.
    pub reading: Reading,
    /// What the server is told about the player.
    pub cmcd: Option<Box<Facts>>,
}

/// How a document is read.
#[derive(Debug, Clone, Default)]
pub enum Reading {
    /// As what it looks like.
    #[default]
    Manifest,
    /// As the index of this piece.
    Index(Box<media::manifest::read::IndexPiece>),
    /// As the head of an MP4 file.
    Movie,
    /// Not at all.
    Discard,
}

/// A document, read; many players share one.
#[derive(Debug, Clone)]
pub enum Document {
    /// A title: a multivariant playlist, an MPD, or a media playlist by itself.
    Stream(Arc<Stream>),
    /// Segments: a media playlist or an index.
    Segments(Arc<Segments>),
    /// A file: how long it is, in bytes and in microseconds.
    File {
        /// Bytes.
        bytes: u64,
        /// Microseconds.
        duration_us: u64,
    },
}

/// How a fetch went.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// It came whole, with a status of success, and what it holds could be read.
    pub ok: bool,
    /// Bytes of its body.
    pub bytes: u64,
    /// When it was sent; never, where there was no connection.
    pub sent: Option<Micros>,
    /// When its first byte came.
    pub first_byte: Option<Micros>,
    /// What it held.
    pub document: Option<Document>,
}
