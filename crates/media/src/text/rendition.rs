//! Text renditions of a title, and the set of them.

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
    /// Only passages that even viewers who understand the original language need, such as foreign
    /// dialogue.
    Forced,
    /// The dialogue in words that are easier to read.
    EasyToRead,
}

impl TextKind {
    /// Returns the name in descriptions and reports.
    pub fn name(self) -> &'static str {
        match self {
            TextKind::Subtitles => "subtitles",
            TextKind::Captions => "captions",
            TextKind::Forced => "forced",
            TextKind::EasyToRead => "easy-to-read",
        }
    }
}

/// One language of text.
#[derive(Debug, Clone, Default, Hash)]
pub struct TextRendition {
    /// Language of the file (ISO 639-2 or BCP 47); `und` if unspecified.
    pub language: String,
    /// Its purpose.
    pub kind: TextKind,
    /// Name that the author gave.
    pub label: Option<String>,
    /// Whether players should show it although no viewer selected it.
    pub is_default: bool,
    /// The cues.
    pub cues: CueList,
    /// Name of the file, or number of the track, that contains it.
    pub source: String,
    /// Defects of the source, for reports.
    pub problems: Vec<CueProblem>,
}

impl TextRendition {
    /// Returns the shortest BCP 47 tag of the language; `None` if it is unspecified.
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
    /// file names, they would come later: `film.en.sdh.srt` sorts before `film.en.srt`.
    ///
    /// If several renditions are marked as default, only the first stays the default: a group of
    /// HLS has at most one (RFC 8216, 4.3.4.1.1).
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

    /// Returns the same set with captions inside of the video. They change no URL.
    #[must_use]
    pub fn with_caption_channels(self, caption_channels: Vec<CaptionChannel>) -> TextSet {
        TextSet {
            caption_channels,
            ..self
        }
    }

    /// Returns the captions inside of the video, sorted.
    pub fn caption_channels(&self) -> &[CaptionChannel] {
        &self.caption_channels
    }

    /// Returns a hash of all cues and their descriptions.
    pub fn content_hash(&self) -> u64 {
        self.content_hash
    }

    /// Returns whether the title has no text.
    pub fn is_empty(&self) -> bool {
        self.renditions.is_empty()
    }

    /// Iterates over the names in URLs and the renditions.
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

/// FNV-1a, whose values are the same in every process and version. They are part of URLs.
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
