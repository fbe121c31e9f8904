//! TTML and IMSC (W3C), converted to cues.
//!
//! Supported: nested timing containers, styles by reference and inline, regions, the time
//! expressions of TTML2 (8.3), and the eight colours that WebVTT has classes for.

use super::ttml_style::{TtmlStyle, TtmlStyles};
use super::ttml_time::TtmlClock;
use super::wvtt::remove_blank_lines;
use super::{Cue, CueList, CueProblem};
use crate::xml::{XmlElement, XmlNode, parse_document};

/// Parses a TTML document.
pub fn parse_ttml(text: &str, problems: &mut Vec<CueProblem>) -> CueList {
    let cues = parse_ttml_cues(text).unwrap_or_else(|| {
        problems.push(CueProblem::Malformed(1));
        Vec::new()
    });
    CueList::from_cues(String::new(), cues, problems)
}

/// Returns the cues of a document; `None` if it is not TTML.
pub(super) fn parse_ttml_cues(text: &str) -> Option<Vec<Cue>> {
    let root = parse_document(text).ok()?;
    if root.name != "tt" {
        return None;
    }
    let mut reader = TtmlReader {
        clock: TtmlClock::of_document(&root),
        styles: TtmlStyles::of_document(&root),
        cues: Vec::new(),
    };
    if let Some(body) = root.first_child("body") {
        let all = (0, i64::MAX);
        reader.read_container(body, all, &TtmlStyle::default());
    }
    Some(reader.cues)
}

struct TtmlReader<'a> {
    clock: TtmlClock,
    styles: TtmlStyles<'a>,
    cues: Vec<Cue>,
}

impl TtmlReader<'_> {
    /// Reads `body`, `div` or `p`. Times of children count from the start of their parent.
    fn read_container(&mut self, element: &XmlElement, parent: (i64, i64), style: &TtmlStyle) {
        let time = self.clock.resolve_time(element, parent);
        let style = self.styles.resolve_style(element, style);
        if element.name == "p" {
            self.read_paragraph(element, time, &style);
            return;
        }
        let mut next = time.0;
        for child in &element.children {
            if matches!(child.name.as_str(), "div" | "p") {
                let window = match element.attribute("timeContainer") {
                    Some("seq") => (next, time.1),
                    _ => time,
                };
                self.read_container(child, window, &style);
                next = self.clock.resolve_time(child, window).1;
            }
        }
    }

    /// Adds the cues of a paragraph: one, or one per timed span.
    fn read_paragraph(&mut self, p: &XmlElement, time: (i64, i64), style: &TtmlStyle) {
        let timed = p
            .children_named("span")
            .filter(|span| self.clock.is_timed(span));
        let timed: Vec<&XmlElement> = timed.collect();
        if timed.is_empty() {
            let mut payload = String::new();
            self.write_content(p, style, &TtmlStyle::default(), &mut payload);
            self.push_cue(p, time, style, &payload);
            return;
        }
        for span in timed {
            let mut payload = String::new();
            let inner = self.styles.resolve_style(span, style);
            self.write_content(span, &inner, &TtmlStyle::default(), &mut payload);
            self.push_cue(span, self.clock.resolve_time(span, time), &inner, &payload);
        }
    }

    fn push_cue(
        &mut self,
        element: &XmlElement,
        time: (i64, i64),
        style: &TtmlStyle,
        payload: &str,
    ) {
        let lines: Vec<&str> = payload.split('\n').map(str::trim).collect();
        let payload = remove_blank_lines(&lines.join("\n"));
        if time.1 == i64::MAX || payload.is_empty() {
            return;
        }
        let id = element.attribute("id").unwrap_or_default();
        self.cues.push(Cue {
            start_ms: time.0,
            end_ms: time.1,
            id: id
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace("-->", ""),
            settings: self.styles.cue_settings(style),
            payload,
        });
    }

    /// Writes the text of an element, in tags for what differs from the `written` style.
    fn write_content(
        &self,
        element: &XmlElement,
        style: &TtmlStyle,
        written: &TtmlStyle,
        out: &mut String,
    ) {
        let tags = style.tags_beyond(written);
        tags.iter()
            .for_each(|tag| out.push_str(&format!("<{tag}>")));
        for node in element.nodes() {
            match node {
                XmlNode::Text(text) => write_text(text, out),
                XmlNode::Element(child) if child.name == "br" => out.push('\n'),
                XmlNode::Element(child) if child.name == "span" => {
                    let inner = self.styles.resolve_style(child, style);
                    self.write_content(child, &inner, style, out);
                }
                XmlNode::Element(_) => {}
            }
        }
        for tag in tags.iter().rev() {
            let name = tag.split('.').next().unwrap_or_default();
            out.push_str(&format!("</{name}>"));
        }
    }
}

/// Appends text, escaped once, with white space collapsed as `xml:space` defaults to.
fn write_text(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            c if c.is_ascii_whitespace() => {
                if !out.ends_with([' ', '\n']) && !out.is_empty() {
                    out.push(' ');
                }
            }
            c => super::srt::push_escaped(out, c),
        }
    }
}
