//! Parses manifests from any origin. The parsers tolerate what players tolerate, limit the size of
//! their input and output, and never panic.
//!
//! [`hls`] and [`mpd`] parse text into [`ManifestRendition`]s. The [`SegmentList`]s of a rendition
//! have exact times and byte positions. If a media playlist or `sidx` must be fetched first, the
//! [`SegmentListSource`] of the rendition contains its URL.

pub mod hls;
pub mod mpd;
pub mod sidx_source;

mod decimal;
mod resource_range;
mod segment_list;
#[cfg(test)]
mod tests;
mod url_template;

pub(crate) use resource_range::shorten_for_message;
pub use resource_range::{ResourceRange, URL_BYTES_MAX, resolve_url};
pub use segment_list::{SEGMENTS_MAX, SegmentList};
pub use sidx_source::SidxSource;
pub use url::Url;

/// Maximum size of a manifest, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 32 << 20;

/// Kind of media in a rendition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RenditionKind {
    /// Video without audio.
    Video,
    /// Audio without video.
    Audio,
    /// Video and audio in the same segments.
    Muxed,
    /// Subtitles or captions.
    Text,
}

/// One alternative of a title, such as a bitrate of its video or a language of its audio.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestRendition {
    /// `Representation@id`, or the URI of an HLS playlist.
    pub id: String,
    /// Kind of media.
    pub kind: RenditionKind,
    /// In HLS, the `GROUP-ID` of a rendition, or the `AUDIO` group of a variant.
    pub group: Option<String>,
    /// Required bits per second. The value of an HLS variant includes its audio.
    pub bandwidth: u64,
    /// Coded width and height in pixels, if known.
    pub resolution: Option<(u32, u32)>,
    /// Pictures per second, if known.
    pub frame_rate: Option<f64>,
    /// RFC 6381 codec strings, comma-separated; empty if unspecified.
    pub codecs: String,
    /// BCP 47 language tag, if known.
    pub language: Option<String>,
    /// Sources of the rendition's segments, in order of time.
    pub segment_sources: Vec<SegmentListSource>,
}

/// The source of some or all segments of a rendition.
#[derive(Debug, Clone, PartialEq)]
pub enum SegmentListSource {
    /// An HLS media playlist that must be fetched and parsed first.
    Playlist(Url),
    /// A `sidx` that must be fetched and parsed first.
    Sidx(Box<SidxSource>),
    /// Known segments.
    Segments(SegmentList),
}

/// A title as its manifest describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedManifest {
    /// All alternatives in manifest order.
    pub renditions: Vec<ManifestRendition>,
    /// Whether the manifest may change or grow. Segments that are added to the manifest later are
    /// not included.
    pub is_live: bool,
    /// Ignored parts of the manifest, for reports.
    pub notes: Vec<String>,
}

impl ParsedManifest {
    /// Adds a note, unless the same note was added before, or there are already 32 notes.
    fn add_note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < 32 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}
