//! Converts TTML and IMSC documents (W3C) to cues.
//!
//! The parser supports nested timing containers, inline and referenced styles, regions, the time
//! expressions of TTML2 (12.3.1), and the eight colours for which WebVTT has classes.

use super::cue::report_problem;
use super::ttml_spans::{
    SPANS_MAX, WRITTEN_MAX, count_content, find_timed_spans, has_only_timed_spans, has_text,
    is_visible_span, list_span_intervals,
};
use super::ttml_style::{TtmlStyle, TtmlStyles};
use super::ttml_time::{TtmlClock, TtmlInterval};
use super::wvtt::remove_blank_lines;
use super::{Cue, CueList, CueProblem};
use crate::xml::{XmlElement, XmlNode, parse_xml_document};

/// Parses a TTML document. Text without an end is shown until the end of the film.
pub fn parse_ttml(text: &str, film_end_ms: i64, problems: &mut Vec<CueProblem>) -> CueList {
    let mut cues = parse_ttml_cues(text).unwrap_or_else(|| {
        report_problem(problems, CueProblem::Malformed(1));
        Vec::new()
    });
    let endless = cues.iter_mut().filter(|cue| cue.end_ms == i64::MAX);
    endless.for_each(|cue| cue.end_ms = film_end_ms);
    CueList::from_cues(String::new(), cues, problems)
}

/// Returns the cues of a document. `None` if the text is not TTML. If a cue has no end, its end
/// time is [`i64::MAX`], which callers replace.
pub(super) fn parse_ttml_cues(text: &str) -> Option<Vec<Cue>> {
    let root = parse_xml_document(text).ok()?;
    if root.name != "tt" {
        return None;
    }
    let mut reader = TtmlReader {
        clock: TtmlClock::from_document(&root),
        styles: TtmlStyles::from_document(&root),
        cues: Vec::new(),
        written: 0,
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
    /// Number of elements and text bytes written so far for split paragraphs. [`WRITTEN_MAX`]
    /// limits this number.
    written: usize,
}

impl TtmlReader<'_> {
    /// Reads `body`, `div` or `p`. Times of children count from the start of their parent, or from
    /// the end of the previous child in a `seq` container.
    fn read_container(&mut self, element: &XmlElement, parent: TtmlInterval, style: &TtmlStyle) {
        let time = self.clock.resolve_interval(element, parent);
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
                next = self.clock.resolve_interval(child, window).1;
            }
        }
    }

    /// Adds the cues of a paragraph. A paragraph without timed spans becomes one cue, and a
    /// paragraph of only timed spans becomes one cue per span. Any other paragraph is split into
    /// cues at each change of the shown spans.
    fn read_paragraph(&mut self, p: &XmlElement, time: TtmlInterval, style: &TtmlStyle) {
        let timed = find_timed_spans(&self.clock, p, time);
        if timed.is_empty() {
            self.push_cue(p, time, style, &[]);
        } else if has_only_timed_spans(&self.clock, p, timed.len()) {
            for (span, time) in timed {
                let inner = self.styles.resolve_style(span, style);
                self.push_cue(span, time, &inner, &[]);
            }
        } else {
            self.split_paragraph(p, time, style, &timed);
        }
    }

    /// Splits a paragraph into cues at each change of the shown spans. A paragraph that exceeds a
    /// limit becomes a single cue with all its text.
    fn split_paragraph(
        &mut self,
        p: &XmlElement,
        time: TtmlInterval,
        style: &TtmlStyle,
        timed: &[(&XmlElement, TtmlInterval)],
    ) {
        let times = list_span_intervals(time, timed);
        let written = times.len().saturating_mul(count_content(p));
        self.written = self.written.saturating_add(written);
        if timed.len() > SPANS_MAX || self.written > WRITTEN_MAX {
            self.push_cue(p, time, style, &[]);
            return;
        }
        for part in times {
            let is_hidden =
                |span: &&(&XmlElement, TtmlInterval)| span.1.0 > part.0 || span.1.1 <= part.0;
            let hidden = timed.iter().filter(is_hidden).map(|(span, _)| *span);
            let hidden: Vec<&XmlElement> = hidden.collect();
            if has_text(p, &hidden) {
                self.push_cue(p, part, style, &hidden);
            }
        }
    }

    /// Adds a cue with the text of an element, without the text of the `hidden` spans.
    fn push_cue(
        &mut self,
        element: &XmlElement,
        time: TtmlInterval,
        style: &TtmlStyle,
        hidden: &[&XmlElement],
    ) {
        let mut payload = String::new();
        self.write_cue_content(element, style, &TtmlStyle::default(), hidden, &mut payload);
        let lines: Vec<&str> = payload.split('\n').map(str::trim).collect();
        let payload = remove_blank_lines(&lines.join("\n"));
        if payload.is_empty() {
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

    /// Writes the text of an element. The enclosing tags already express the style `written`, and
    /// new tags express the other properties of `style`.
    fn write_cue_content(
        &self,
        element: &XmlElement,
        style: &TtmlStyle,
        written: &TtmlStyle,
        hidden: &[&XmlElement],
        out: &mut String,
    ) {
        let tags = style.additional_tags(written);
        tags.iter()
            .for_each(|tag| out.push_str(&format!("<{tag}>")));
        for node in element.nodes() {
            match node {
                XmlNode::Text(text) => push_collapsed_text(text, out),
                XmlNode::Element(child) if child.name == "br" => out.push('\n'),
                XmlNode::Element(child) if is_visible_span(child, hidden) => {
                    let inner = self.styles.resolve_style(child, style);
                    self.write_cue_content(child, &inner, style, hidden, out);
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

/// Escapes and appends text. Consecutive white space becomes one space, which is the default of
/// `xml:space`.
fn push_collapsed_text(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            c if c.is_ascii_whitespace() => {
                if !out.ends_with([' ', '\n']) && !out.is_empty() {
                    out.push(' ');
                }
            }
            c => super::srt::push_vtt_escaped(out, c),
        }
    }
}
