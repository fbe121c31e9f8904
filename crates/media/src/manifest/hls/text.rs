//! Writes the `EXT-X-MEDIA` tags and media playlists of subtitles in HLS. Subtitles are WebVTT (RFC
//! 8216, 3.5) or IMSC segments.

use super::media::{ExtinfWriter, write_playlist_header};
use super::playlist_version;
use crate::manifest::escaping::QuotedString;
use crate::manifest::{HlsTextForm, SegmentFormat, language_tag, url};
use crate::presentation::Presentation;
use crate::text::{IMSC_CODEC, TextKind, TextRendition, TextSet};
use std::fmt::Write;

/// `GROUP-ID` of all subtitles.
const TEXT_GROUP: &str = "text";
/// `GROUP-ID` of captions that the video contains.
const CAPTION_GROUP: &str = "cc";

/// Characteristics that describe captions (RFC 8216bis, 4.4.6.1).
const CAPTION_CHARACTERISTICS: &str =
    "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound";

/// Characteristic of text that is easier to read (RFC 8216bis, 4.4.6.1).
const EASY_TO_READ_CHARACTERISTIC: &str = "public.easy-to-read";

/// The attributes and the codec string with which every variant declares the subtitles and captions
/// of the title.
#[derive(Default)]
pub(super) struct TextVariantAttributes {
    /// Attributes that name the groups; empty if the title has neither subtitles nor captions.
    pub(super) attributes: String,
    /// Codec string of the text; `None` for WebVTT, which needs no codec string.
    pub(super) codec: Option<&'static str>,
}

/// Writes the `EXT-X-MEDIA` tags of all subtitles and captions.
pub(super) fn write_text_group(
    out: &mut String,
    presentation: &Presentation,
    format: SegmentFormat,
) -> TextVariantAttributes {
    let text = &presentation.text;
    let form = HlsTextForm::choose_text_form(format, &presentation.manifest_rules);
    let mut names: Vec<String> = Vec::new();
    // Renditions that players may select automatically must differ in language or kind (RFC 8216,
    // 4.3.4.1.1). The default rendition takes precedence over other renditions with the same
    // language and kind.
    let choice_of = |rendition: &TextRendition| (rendition.language_tag(), rendition.kind);
    let default_text = text.renditions().find(|(_, text)| text.is_default);
    let mut selectable = Vec::from_iter(default_text.map(|(_, rendition)| choice_of(rendition)));
    for (id, rendition) in text.renditions() {
        let name = unique_name(rendition, &names);
        let _ = write!(
            out,
            "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"{TEXT_GROUP}\",NAME=\"{}\"",
            QuotedString(&name)
        );
        if let Some(tag) = rendition.language_tag() {
            let _ = write!(out, ",LANGUAGE=\"{tag}\"");
        }
        let choice = choice_of(rendition);
        let (is_default, is_forced_track) =
            (rendition.is_default, rendition.kind == TextKind::Forced);
        let is_first = !selectable.contains(&choice);
        selectable.push(choice);
        let yes = |is: bool| if is { "YES" } else { "NO" };
        let _ = write!(
            out,
            ",DEFAULT={},AUTOSELECT={},FORCED={}",
            yes(is_default),
            yes(is_default || is_forced_track || is_first),
            yes(is_forced_track)
        );
        let characteristics = match rendition.kind {
            TextKind::Captions => Some(CAPTION_CHARACTERISTICS),
            TextKind::EasyToRead => Some(EASY_TO_READ_CHARACTERISTIC),
            TextKind::Subtitles | TextKind::Forced => None,
        };
        if let Some(characteristics) = characteristics {
            let _ = write!(out, ",CHARACTERISTICS=\"{characteristics}\"");
        }
        let _ = writeln!(
            out,
            ",URI=\"{}\"",
            url::text_playlist_url(form, presentation, id)
        );
        names.push(name);
    }
    let mut group = TextVariantAttributes::default();
    if !text.is_empty() {
        let _ = write!(group.attributes, ",SUBTITLES=\"{TEXT_GROUP}\"");
        group.codec = (form == HlsTextForm::Imsc).then_some(IMSC_CODEC);
    }
    if write_caption_channels(out, text) {
        let _ = write!(group.attributes, ",CLOSED-CAPTIONS=\"{CAPTION_GROUP}\"");
    }
    group
}

/// Writes the `EXT-X-MEDIA` tags of captions that the video contains. Returns whether there are any
/// captions. The languages of the captions are unknown.
fn write_caption_channels(out: &mut String, text: &TextSet) -> bool {
    for (n, channel) in text.caption_channels().iter().enumerate() {
        let id = channel.instream_id();
        let default = if n == 0 { "YES" } else { "NO" };
        let _ = writeln!(
            out,
            "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"{CAPTION_GROUP}\",NAME=\"Captions {id}\",DEFAULT=NO,AUTOSELECT={default},INSTREAM-ID=\"{id}\""
        );
    }
    !text.caption_channels().is_empty()
}

/// Returns the name that players show. If the group already contains the name, a number is added.
fn unique_name(rendition: &TextRendition, taken: &[String]) -> String {
    let name = rendition.display_name();
    let numbered = (2..).map(|n| format!("{name} {n}"));
    let mut free = std::iter::once(name.clone()).chain(numbered);
    free.find(|name| !taken.contains(name)).unwrap_or_default()
}

impl TextRendition {
    /// Returns the name that players show: the label that the author gave, or the language with the
    /// kind. Examples are `English` and `English (captions)`.
    pub fn display_name(&self) -> String {
        let label = self.label.as_deref().map(str::trim).unwrap_or_default();
        if !label.is_empty() {
            return label.to_owned();
        }
        let tag = self.language_tag();
        let language = tag
            .as_deref()
            .map(|tag| language_tag::english_name(tag).unwrap_or(tag));
        let language = language.unwrap_or("Subtitles");
        match self.kind {
            TextKind::Subtitles => language.to_owned(),
            TextKind::Captions => format!("{language} (captions)"),
            TextKind::Forced => format!("{language} (forced)"),
            TextKind::EasyToRead => format!("{language} (easy to read)"),
        }
    }
}

/// Writes the media playlist of text, which is the same for all text renditions. The segments have
/// the same boundaries as the segments of the video, or of the first audio rendition of a title
/// without video. Returns `None` if the presentation is empty.
///
/// Text segments are never encrypted, so there is no `EXT-X-KEY`.
pub fn write_text_playlist(presentation: &Presentation, form: HlsTextForm) -> Option<String> {
    let grid = presentation.text_segment_times()?;
    let (extension, container) = match form {
        HlsTextForm::WebVtt(SegmentFormat::Cmaf) => ("vtt", SegmentFormat::Ts),
        HlsTextForm::WebVtt(SegmentFormat::Ts) => ("ts.vtt", SegmentFormat::Ts),
        HlsTextForm::Imsc => ("imsc.m4s", SegmentFormat::Cmaf),
    };
    let mut out = String::with_capacity(400 + grid.segment_count() * 40);
    let version = playlist_version(container, false);
    write_playlist_header(&mut out, presentation, version, "");
    if form == HlsTextForm::Imsc {
        let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", url::IMSC_INIT_SEGMENT);
    }
    let mut clock = ExtinfWriter::new(presentation, grid.reference_rendition());
    for n in 0..grid.segment_count() {
        clock.write_extinf(
            &mut out,
            presentation.segment_start(grid.reference_rendition(), n + 1),
        );
        let _ = writeln!(
            out,
            "{}",
            url::segment_url(grid.segment_start(n), extension)
        );
    }
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}
