//! WebVTT cue text (WebVTT, 4.2.2), written as inline content of TTML.

use super::color::COLORS;
use crate::manifest::escaping::XmlText;
use std::fmt::Write;

/// Maximum number of open tags. Further tags are ignored.
const DEPTH_MAX: usize = 16;
/// Maximum length of a character reference, in bytes.
const REFERENCE_BYTES_MAX: usize = 10;

/// Writes cue text as `span`s, line breaks and text. Every tag is closed.
pub(super) fn write_inline_content(out: &mut String, payload: &str) {
    let (mut open, mut rest) = (Vec::new(), payload);
    while let Some(at) = rest.find(['<', '&', '\n']) {
        let (text, special) = rest.split_at(at);
        let _ = write!(out, "{}", XmlText(text));
        rest = match special.as_bytes().first() {
            Some(b'<') => convert_vtt_tag(out, &special[1..], &mut open),
            Some(b'&') => write_referenced_character(out, &special[1..]),
            _ => {
                out.push_str("<br/>");
                &special[1..]
            }
        };
    }
    let _ = write!(out, "{}", XmlText(rest));
    open.iter().for_each(|_| out.push_str("</span>"));
}

/// Converts a tag. `text` starts after the `<` of the tag. Returns the text after the tag.
fn convert_vtt_tag<'a>(out: &mut String, text: &'a str, open: &mut Vec<&'a str>) -> &'a str {
    // A tag without `>` extends to the end of the cue.
    let (tag, rest) = text.split_once('>').unwrap_or((text, ""));
    if let Some(name) = tag.strip_prefix('/') {
        if let Some(at) = open.iter().rposition(|known| *known == name.trim()) {
            open.drain(at..).for_each(|_| out.push_str("</span>"));
        }
        return rest;
    }
    let mut names = tag.split_whitespace().next().unwrap_or_default().split('.');
    let name = names.next().unwrap_or_default();
    let style = match name {
        "b" => " tts:fontWeight=\"bold\"".to_owned(),
        "i" => " tts:fontStyle=\"italic\"".to_owned(),
        "u" => " tts:textDecoration=\"underline\"".to_owned(),
        "c" | "v" | "lang" => names.find_map(ttml_color_attribute).unwrap_or_default(),
        // Ruby tags, and timestamps within a cue, are ignored.
        _ => return rest,
    };
    if open.len() < DEPTH_MAX {
        open.push(name);
        let _ = write!(out, "<span{style}>");
    }
    rest
}

/// Returns the TTML attribute for a colour class of WebVTT.
fn ttml_color_attribute(class: &str) -> Option<String> {
    let known = COLORS.iter().find(|(name, _)| *name == class);
    known.map(|(_, value)| format!(" tts:color=\"{value}\""))
}

/// Writes the character of a character reference. `text` starts after the `&` of the reference.
/// Returns the text after the reference. An unknown reference is ordinary text.
fn write_referenced_character<'a>(out: &mut String, text: &'a str) -> &'a str {
    let end = text
        .bytes()
        .take(REFERENCE_BYTES_MAX)
        .position(|b| b == b';');
    let found = end.and_then(|end| {
        Some((
            decode_character_reference(text.get(..end)?)?,
            text.get(end + 1..)?,
        ))
    });
    let (c, rest) = found.unwrap_or(('&', text));
    let _ = write!(out, "{}", XmlText(c.encode_utf8(&mut [0; 4])));
    rest
}

fn decode_character_reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "nbsp" => '\u{a0}',
        "lrm" => '\u{200e}',
        "rlm" => '\u{200f}',
        _ => return None,
    })
}
