//! The text renditions of a title, as listed in its check report.

use media::text::TextRendition;
use serde::Serialize;
use std::fmt::Write;

/// A text rendition.
#[derive(Debug, Serialize)]
pub struct TextRenditionRow {
    /// Name in URLs.
    pub name: String,
    /// One of `subtitles`, `captions`, `forced` and `easy-to-read`.
    pub kind: &'static str,
    /// Name that players show to viewers.
    pub label: String,
    /// Whether players should show the text even if the viewer has not selected it.
    pub is_default: bool,
    /// Number of cues.
    pub cues: usize,
    /// Name of the file or number of the track that contains the text.
    pub source: String,
}

impl TextRenditionRow {
    pub(super) fn from_rendition((name, text): (&str, &TextRendition)) -> TextRenditionRow {
        TextRenditionRow {
            name: name.to_owned(),
            kind: text.kind.name(),
            label: text.display_name(),
            is_default: text.is_default,
            cues: text.cues.cues().len(),
            source: text.source.clone(),
        }
    }

    pub(super) fn write_row(&self, out: &mut String) {
        let TextRenditionRow {
            name,
            kind,
            label,
            is_default,
            cues,
            source,
        } = self;
        let (unit, default) = (
            if *cues == 1 { "cue" } else { "cues" },
            if *is_default { ", default" } else { "" },
        );
        let _ = writeln!(
            out,
            "\n{name}  {label} ({kind}{default})  {cues} {unit}  {source}"
        );
    }
}
