//! Manifests of any origin, read as a player reads them: tolerant of what players tolerate,
//! bounded, never a panic.
//!
//! [`hls`] and [`mpd`] turn text into [`Rendition`]s whose [`Segments`] have exact times and know
//! where their bytes lie. What has to be fetched before segments are known (an HLS media playlist,
//! a `sidx`) is a [`Piece`] that says so.

pub mod hls;
pub mod index;
pub mod mpd;

mod address;
mod decimal;
mod segments;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use address::short;
pub use address::{Part, URL_BYTES_MAX, resolve};
pub use index::IndexPiece;
pub use segments::{SEGMENTS_MAX, Segments};
pub use url::Url;

/// The longest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 32 << 20;

/// What a rendition carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Pictures alone.
    Video,
    /// Sound alone.
    Audio,
    /// Pictures and sound in the same segments.
    Muxed,
    /// Subtitles or captions.
    Text,
}

/// One choice of a title: a bitrate of its video, a language of its sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendition {
    /// `Representation@id`, or the URI of an HLS playlist.
    pub id: String,
    /// What it carries.
    pub kind: Kind,
    /// HLS: the `GROUP-ID` of a rendition, or the `AUDIO` group that a variant names.
    pub group: Option<String>,
    /// Bits a second that it may need. HLS variants count their audio in it.
    pub bandwidth: u64,
    /// Coded width and height in pixels, where known.
    pub resolution: Option<(u32, u32)>,
    /// Pictures a second, where known.
    pub frame_rate: Option<f64>,
    /// RFC 6381 codec strings, comma-separated; empty where not said.
    pub codecs: String,
    /// BCP 47, where known.
    pub language: Option<String>,
    /// What makes up its segments, in order of time.
    pub pieces: Vec<Piece>,
}

/// A stretch of a rendition.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// An HLS media playlist that must be fetched and read first.
    Playlist(Url),
    /// A `sidx` that must be fetched and read first.
    Index(Box<IndexPiece>),
    /// Segments, known.
    Segments(Segments),
}

/// What a manifest says of a title.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Title {
    /// All that can be chosen, in the manifest's order.
    pub renditions: Vec<Rendition>,
    /// It may change or grow; what it lists now is all that is read.
    pub live: bool,
    /// What was left out, and why, for people.
    pub notes: Vec<String>,
}

impl Title {
    /// Writes down what was left out; after some dozens, no more.
    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < 32 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}
