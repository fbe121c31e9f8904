//! A text rendition, and the set of all text renditions of a title.

use super::{CaptionChannel, CueList, CueProblem};
use crate::manifest::language_tag::shortest_tag;
use std::hash::Hash;

/// Purpose of a text rendition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum TextKind {
    /// A translation of the dialogue.
    #[default]
    Subtitles,
    /// The dialogue and all relevant sounds, for viewers who cannot hear them.
    Captions,
    /// Only passages such as foreign dialogue. Even viewers who understand the original language
    /// need these passages.
    Forced,
    /// The dialogue in words that are easier to read.
    EasyToRead,
}

impl TextKind {
    /// Returns the name that descriptions and reports use.
    pub fn name(self) -> &'static str {
        match self {
            TextKind::Subtitles => "subtitles",
            TextKind::Captions => "captions",
            TextKind::Forced => "forced",
            TextKind::EasyToRead => "easy-to-read",
        }
    }
}

/// Text of one kind in one language.
#[derive(Debug, Clone, Default, Hash)]
pub struct TextRendition {
    /// Language of the text (ISO 639-2 or BCP 47); `und` if unspecified.
    pub language: String,
    /// Purpose of the rendition.
    pub kind: TextKind,
    /// Name that the author gave to the rendition.
    pub label: Option<String>,
    /// Whether players should show the rendition if the viewer selects none.
    pub is_default: bool,
    /// The cues.
    pub cues: CueList,
    /// Name of the file or number of the track that contains the text.
    pub source: String,
    /// Defects of the source, for reports.
    pub problems: Vec<CueProblem>,
}

impl TextRendition {
    /// Returns the shortest BCP 47 tag of the language. `None` if the language is unspecified.
    pub fn language_tag(&self) -> Option<String> {
        shortest_tag(&self.language)
    }
}

/// Sorts by kind within each language. The order of the languages does not change.
fn sort_by_language_and_kind(renditions: &mut [TextRendition]) {
    let mut languages = Vec::new();
    for rendition in renditions.iter() {
        let tag = rendition.language_tag();
        if !languages.contains(&tag) {
            languages.push(tag);
        }
    }
    renditions.sort_by_cached_key(|rendition| {
        let tag = rendition.language_tag();
        (
            languages.iter().position(|known| *known == tag),
            rendition.kind,
        )
    });
}

/// The text renditions of a title.
#[derive(Debug, Clone, Default)]
pub struct TextSet {
    renditions: Vec<(String, TextRendition)>,
    content_hash: u64,
    caption_channels: Vec<CaptionChannel>,
}

impl TextSet {
    /// Names the renditions `text=en`, `text=en-2` and so on. Within a language, plain subtitles
    /// come first, because some players choose the first rendition of a language. In the order of
    /// file names, captions could come first, because `film.en.sdh.srt` sorts before `film.en.srt`.
    ///
    /// If several renditions are marked as default, only the first of them stays the default. An
    /// HLS group may have at most one default rendition (RFC 8216, 4.3.4.1.1).
    pub fn new(mut renditions: Vec<TextRendition>) -> TextSet {
        sort_by_language_and_kind(&mut renditions);
        let mut hasher = Fnv1a::default();
        renditions.hash(&mut hasher);
        let defaults = renditions.iter_mut().filter(|text| text.is_default);
        defaults.skip(1).for_each(|text| text.is_default = false);
        let mut named: Vec<(String, TextRendition)> = Vec::with_capacity(renditions.len());
        for rendition in renditions {
            let tag = rendition.language_tag().unwrap_or_else(|| "und".to_owned());
            let numbered = (2..).map(|n| format!("text={tag}-{n}"));
            let mut names = std::iter::once(format!("text={tag}")).chain(numbered);
            let free = names.find(|name| !named.iter().any(|(taken, _)| taken == name));
            named.extend(free.map(|name| (name, rendition)));
        }
        TextSet {
            renditions: named,
            content_hash: std::hash::Hasher::finish(&hasher),
            caption_channels: Vec::new(),
        }
    }

    /// Sets the caption channels that the video contains. Caption channels do not change any URL.
    #[must_use]
    pub fn with_caption_channels(self, caption_channels: Vec<CaptionChannel>) -> TextSet {
        TextSet {
            caption_channels,
            ..self
        }
    }

    /// Returns the caption channels inside the video, sorted.
    pub fn caption_channels(&self) -> &[CaptionChannel] {
        &self.caption_channels
    }

    /// Returns a hash of the cues and the descriptions of all renditions.
    pub fn content_hash(&self) -> u64 {
        self.content_hash
    }

    /// Returns whether the title has no text renditions.
    pub fn is_empty(&self) -> bool {
        self.renditions.is_empty()
    }

    /// Iterates over the renditions, each with its name in URLs.
    pub fn renditions(&self) -> impl ExactSizeIterator<Item = (&str, &TextRendition)> {
        self.renditions
            .iter()
            .map(|(name, rendition)| (&**name, rendition))
    }

    /// Finds a rendition by its name in URLs.
    pub fn find_rendition(&self, name: &str) -> Option<&TextRendition> {
        self.renditions()
            .find(|(known, _)| *known == name)
            .map(|(_, rendition)| rendition)
    }

    /// Approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.renditions()
            .map(|(_, rendition)| rendition.cues.heap_bytes())
            .sum()
    }
}

/// The FNV-1a hash function. Its values are part of URLs, so they must be the same in every process
/// and every version.
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }
}

impl std::hash::Hasher for Fnv1a {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
