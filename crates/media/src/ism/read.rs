//! Reading server manifests, tolerantly: of a SMIL document only the files and tracks count.

use super::{Kind, Source};
use crate::error::{Error, Kind as Fault, Result};
use crate::xml::{self, Element};
use std::borrow::Cow;

/// Longest server manifest that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Most tracks that it may name.
pub const SOURCES_MAX: usize = 256;

/// The tracks that a server manifest names, in its order.
///
/// # Errors
/// `TooLarge` past [`TEXT_BYTES_MAX`] and [`SOURCES_MAX`]; `Malformed` for what is no SMIL;
/// `Unsupported` for playlists of clips; `Empty` where no file is named.
pub fn read(bytes: &[u8]) -> Result<Vec<Source>> {
    if bytes.len() > TEXT_BYTES_MAX {
        let what = format!("it is over {TEXT_BYTES_MAX} bytes long");
        return Err(Error::new(Fault::TooLarge, what));
    }
    let text = text(bytes)?;
    let root = xml::parse(&text)?;
    if root.name != "smil" {
        let what = format!("it is no SMIL document: it begins with {}", root.name);
        return Err(Error::malformed(what));
    }
    let mut sources = Vec::new();
    collect(&root, &mut sources)?;
    if sources.is_empty() {
        let what = "it names no file (no element with a src)";
        return Err(Error::new(Fault::Empty, what));
    }
    Ok(sources)
}

/// Adds what an element and those in it name. Trees are no deeper than `xml` reads them.
fn collect(element: &Element, sources: &mut Vec<Source>) -> Result<()> {
    if element.name == "seq" && element.children.len() > 1 {
        let what = "it plays one clip after another; only a title's own files are served";
        return Err(Error::unsupported(what));
    }
    sources.extend(source(element));
    if sources.len() > SOURCES_MAX {
        let what = format!("it names over {SOURCES_MAX} tracks; at most those are read");
        return Err(Error::new(Fault::TooLarge, what));
    }
    element
        .children
        .iter()
        .try_for_each(|child| collect(child, sources))
}

fn source(element: &Element) -> Option<Source> {
    let kind = [Kind::Video, Kind::Audio, Kind::Text]
        .into_iter()
        .find(|kind| kind.element() == element.name)?;
    let src = element.get("src").filter(|src| !src.is_empty())?;
    let language = element.get("systemLanguage");
    let language = language.filter(|language| !matches!(*language, "" | "und"));
    Some(Source {
        src: src.to_owned(),
        kind,
        language: language.map(str::to_owned),
        track: param(element, "trackID").and_then(|id| id.parse().ok()),
    })
}

fn param<'a>(element: &'a Element, wanted: &str) -> Option<&'a str> {
    let mut params = element.all("param");
    let found = params.find(|param| param.get("name") == Some(wanted))?;
    found.get("value")
}

/// UTF-8, or UTF-16 that says so by its byte order mark.
fn text(bytes: &[u8]) -> Result<Cow<'_, str>> {
    let wide = |unit: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| unit(*pair));
        let text: Option<String> = char::decode_utf16(units)
            .collect::<std::result::Result<_, _>>()
            .ok();
        text.filter(|_| rest.is_empty())
            .map(Cow::Owned)
            .ok_or_else(|| Error::malformed("it is not the UTF-16 that it claims to be"))
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => std::str::from_utf8(rest)
            .map(Cow::Borrowed)
            .map_err(|_| Error::malformed("it is neither UTF-8 nor UTF-16")),
    }
}
