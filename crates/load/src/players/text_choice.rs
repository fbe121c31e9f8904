//! Chooses the subtitles that a viewer shows.

use super::title_ladder::{RenditionSource, build_source};
use media::Result;
use media::manifest::read::{ManifestRendition, ParsedManifest, RenditionKind};

/// The subtitles that viewers choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TextPreference {
    /// No subtitles. This is the default of players.
    #[default]
    Off,
    /// The subtitles that the manifest lists first.
    First,
    /// The subtitles in this language (BCP 47). A title that lacks this language is shown without
    /// subtitles.
    Language(String),
}

impl TextPreference {
    /// Parses `off`, `first` or a language tag.
    pub fn parse_text_preference(text: &str) -> TextPreference {
        match text {
            "off" => TextPreference::Off,
            "first" => TextPreference::First,
            language => TextPreference::Language(language.to_owned()),
        }
    }

    /// Returns the source of the chosen subtitles. Returns none if subtitles are off, or if the
    /// title does not have the chosen subtitles.
    ///
    /// # Errors
    /// `TooLarge` if the subtitles have too many segments or init segments.
    pub fn choose_text(&self, title: &ParsedManifest) -> Result<Option<RenditionSource>> {
        let is_chosen = |rendition: &&ManifestRendition| match self {
            TextPreference::Off => false,
            TextPreference::First => true,
            TextPreference::Language(tag) => rendition
                .language
                .as_deref()
                .is_some_and(|language| language.eq_ignore_ascii_case(tag)),
        };
        let texts = title.renditions.iter();
        let mut texts = texts.filter(|rendition| rendition.kind == RenditionKind::Text);
        texts
            .find(is_chosen)
            .map(|rendition| build_source(rendition.clone()))
            .transpose()
    }
}
