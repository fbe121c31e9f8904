//! Parses server manifests tolerantly. Reads only the files and tracks of a SMIL document.

use super::{SmilTrack, SmilTrackKind};
use crate::error::{Error, ErrorKind, Result};
use crate::index::TrackRole;
use crate::xml::{self, XmlElement};
use std::borrow::Cow;

/// Maximum size of a server manifest, in bytes.
pub const SERVER_MANIFEST_BYTES_MAX: usize = 1 << 20;
/// Maximum number of tracks in a server manifest.
pub const SMIL_TRACKS_MAX: usize = 256;

/// Returns the tracks of a server manifest in document order.
///
/// # Errors
/// `TooLarge` if the manifest exceeds [`SERVER_MANIFEST_BYTES_MAX`] or [`SMIL_TRACKS_MAX`];
/// `Malformed` if the document is not SMIL; `Unsupported` for a sequence of clips; `Empty` if no
/// file is listed.
pub fn parse_server_manifest(bytes: &[u8]) -> Result<Vec<SmilTrack>> {
    if bytes.len() > SERVER_MANIFEST_BYTES_MAX {
        let message = format!("a server manifest of more than {SERVER_MANIFEST_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let text = decode_text(bytes)?;
    let root = xml::parse_xml_document(&text)?;
    if root.name != "smil" {
        let message = format!("not a SMIL document: it starts with {}", root.name);
        return Err(Error::malformed(message));
    }
    let mut sources = Vec::new();
    collect_smil_tracks(&root, &mut sources)?;
    if sources.is_empty() {
        let message = "the server manifest names no file (no element with a src)";
        return Err(Error::new(ErrorKind::Empty, message));
    }
    Ok(sources)
}

/// Adds the tracks of an element and of its children. The XML parser limits the depth of the
/// recursion.
fn collect_smil_tracks(element: &XmlElement, sources: &mut Vec<SmilTrack>) -> Result<()> {
    if element.name == "seq" && element.children.len() > 1 {
        let message = "the server manifest plays one clip after another; only the files of one title are served";
        return Err(Error::unsupported(message));
    }
    sources.extend(parse_smil_track(element));
    if sources.len() > SMIL_TRACKS_MAX {
        let message = format!("the server manifest lists more than {SMIL_TRACKS_MAX} tracks");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    element
        .children
        .iter()
        .try_for_each(|child| collect_smil_tracks(child, sources))
}

fn parse_smil_track(element: &XmlElement) -> Option<SmilTrack> {
    let kind = [
        SmilTrackKind::Video,
        SmilTrackKind::Audio,
        SmilTrackKind::Text,
    ]
    .into_iter()
    .find(|kind| kind.element_name() == element.name)?;
    let src = element.attribute("src").filter(|src| !src.is_empty())?;
    let language = element.attribute("systemLanguage");
    let language = language.filter(|language| !matches!(*language, "" | "und"));
    Some(SmilTrack {
        src: src.to_owned(),
        kind,
        language: language.map(str::to_owned),
        track_id: find_param(element, "trackID").and_then(|id| id.parse().ok()),
        text_role: find_param(element, "Subtype")
            .filter(|_| kind == SmilTrackKind::Text)
            .and_then(text_role_of_subtype),
    })
}

/// Returns the purpose that the subtype of a text stream declares.
fn text_role_of_subtype(subtype: &str) -> Option<TrackRole> {
    match subtype.to_ascii_uppercase().as_str() {
        "CAPT" => Some(TrackRole::Caption),
        "SUBT" => Some(TrackRole::Subtitle),
        _ => None,
    }
}

fn find_param<'a>(element: &'a XmlElement, wanted: &str) -> Option<&'a str> {
    let mut params = element.children_named("param");
    let found = params.find(|param| param.attribute("name") == Some(wanted))?;
    found.attribute("value")
}

/// Decodes UTF-8, or UTF-16 with a byte order mark.
fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>> {
    let wide = |unit: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| unit(*pair));
        let text: Option<String> = char::decode_utf16(units)
            .collect::<std::result::Result<_, _>>()
            .ok();
        text.filter(|_| rest.is_empty())
            .map(Cow::Owned)
            .ok_or_else(|| {
                Error::malformed(
                    "the server manifest has a UTF-16 byte order mark but is not UTF-16",
                )
            })
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => std::str::from_utf8(rest)
            .map(Cow::Borrowed)
            .map_err(|_| Error::malformed("the server manifest is neither UTF-8 nor UTF-16")),
    }
}
