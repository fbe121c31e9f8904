//! SubRip (`.srt`). The format has no standard, so the parser is as lenient as common players.

use super::color::find_color_class;
use super::cue::report_problem;
use super::vtt::{ARROW, parse_timing, unify_line_ends};
use super::wvtt::remove_blank_lines;
use super::{Cue, CueList, CueProblem};

/// Maximum length of a tag, in bytes. A longer tag is ordinary text.
const TAG_BYTES_MAX: usize = 256;

/// Parses SubRip. A cue extends to the next line with times, so a cue may contain blank lines.
pub fn parse_srt(text: &str, problems: &mut Vec<CueProblem>) -> CueList {
    let text = unify_line_ends(text);
    let mut cues: Vec<(Cue, Vec<&str>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.contains(ARROW) {
            if let Some((_, lines)) = cues.last_mut() {
                lines.push(line);
            }
            continue;
        }
        if let Some((_, lines)) = cues.last_mut() {
            remove_next_cue_number(lines);
        }
        match parse_timing(line) {
            // Drops the coordinates of bitmap subtitles, which may follow the times.
            Some(cue) => cues.push((
                Cue {
                    settings: String::new(),
                    ..cue
                },
                Vec::new(),
            )),
            None => report_problem(problems, CueProblem::Malformed(number + 1)),
        }
    }
    if cues.is_empty() {
        report_problem(problems, CueProblem::Malformed(1));
    }
    let cues = cues
        .into_iter()
        .map(|(cue, lines)| convert_cue(cue, &lines));
    CueList::from_cues(String::new(), cues.collect(), problems)
}

/// Removes the number of the next cue from the end of a cue's lines.
fn remove_next_cue_number(lines: &mut Vec<&str>) {
    let is_number = |line: &&str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
    if lines.last().is_some_and(is_number) {
        lines.pop();
    }
}

fn convert_cue(cue: Cue, lines: &[&str]) -> Cue {
    let text: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.is_empty())
        .collect();
    let (mut settings, mut payload) = (String::new(), String::new());
    convert_markup(&text.join("\n"), &mut payload, &mut settings);
    Cue {
        settings,
        // Removes lines that contained only override codes and are blank now.
        payload: remove_blank_lines(payload.trim()),
        ..cue
    }
}

/// Converts the tags `<b>`, `<i>`, `<u>` and `<font color>` and alignment codes such as `{\an8}`.
/// Other override codes are dropped, and all other text is escaped.
fn convert_markup(mut rest: &str, payload: &mut String, settings: &mut String) {
    while let Some(c) = rest.chars().next() {
        let tag = rest
            .strip_prefix('<')
            .and_then(|tag| split_at_tag_end(tag, '>'));
        let code = rest
            .strip_prefix("{\\")
            .and_then(|code| split_at_tag_end(code, '}'));
        if let Some((converted, after)) =
            tag.and_then(|(tag, after)| Some((convert_tag(tag)?, after)))
        {
            payload.push_str(&converted);
            rest = after;
        } else if let Some((code, after)) = code {
            if let Some(found) = alignment_cue_settings(code) {
                found.clone_into(settings);
            }
            rest = after;
        } else {
            push_vtt_escaped(payload, c);
            rest = &rest[c.len_utf8()..];
        }
    }
}

/// Splits text at the end character of a tag. `None` if the tag does not end within
/// [`TAG_BYTES_MAX`] bytes. Without this limit, text with many unclosed tags would take quadratic
/// time.
fn split_at_tag_end(text: &str, end: char) -> Option<(&str, &str)> {
    let at = text
        .bytes()
        .take(TAG_BYTES_MAX)
        .position(|byte| char::from(byte) == end)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Converts a tag to WebVTT. Returns `None` for an unknown tag, which is ordinary text.
fn convert_tag(tag: &str) -> Option<String> {
    let lower = tag.trim().to_ascii_lowercase();
    match lower.as_str() {
        "b" | "i" | "u" | "/b" | "/i" | "/u" => Some(format!("<{lower}>")),
        "/font" => Some("</c>".to_owned()),
        font if font.starts_with("font") => {
            let class = find_color_attribute(font).and_then(find_color_class);
            let class = class.map(|class| format!("<c.{class}>"));
            Some(class.unwrap_or_else(|| "<c>".to_owned()))
        }
        _ => None,
    }
}

/// Returns the value of the attribute `color` in a lower-case tag. Other attributes may precede or
/// follow this attribute.
fn find_color_attribute(tag: &str) -> Option<&str> {
    let starts = tag.match_indices("color").map(|(at, _)| at);
    // Skips attributes whose names only end in `color`, such as `bgcolor`.
    let mut starts = starts.filter(|at| tag[..*at].ends_with([' ', '\t', '\n', '"', '\'']));
    starts.find_map(|at| {
        let name_and_value = tag.get(at..)?.split_once('=')?;
        let is_whole_name = name_and_value.0.trim_end() == "color";
        let value = name_and_value.1.trim_start();
        let quoted = value.strip_prefix(['"', '\'']);
        let end = match quoted {
            Some(_) => &['"', '\''][..],
            None => &[' ', '\t', '\n', '"', '\''],
        };
        let value = quoted.unwrap_or(value).split(end).next();
        value.filter(|_| is_whole_name)
    })
}

/// Returns the cue settings for the alignment code in a list of override codes, such as
/// `an8\pos(1,2)`.
fn alignment_cue_settings(codes: &str) -> Option<&'static str> {
    codes.split('\\').find_map(settings_of_alignment_code)
}

/// Returns the cue settings for an alignment code. Its digit is a position on a numeric keypad.
fn settings_of_alignment_code(code: &str) -> Option<&'static str> {
    match code.trim() {
        "an1" => Some("align:left"),
        "an3" => Some("align:right"),
        "an4" => Some("line:50% align:left"),
        "an5" => Some("line:50%"),
        "an6" => Some("line:50% align:right"),
        "an7" => Some("line:0 align:left"),
        "an8" => Some("line:0"),
        "an9" => Some("line:0 align:right"),
        _ => None,
    }
}

/// Appends a character, escaped for WebVTT cue text.
pub(super) fn push_vtt_escaped(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '\0' => out.push('\u{fffd}'),
        c => out.push(c),
    }
}
