//! TTML paragraphs whose spans have their own times.

use super::ttml_time::{TtmlClock, TtmlInterval};
use crate::xml::{XmlElement, XmlNode};
use std::ptr;

/// Maximum number of timed spans in a paragraph that is split into several cues.
pub(super) const SPANS_MAX: usize = 64;
/// Maximum sum of elements and text bytes that are written for all split paragraphs of a document.
/// At each change of the shown spans, the content of the paragraph is written again. Without this
/// limit, the cues of a small file could become very large.
pub(super) const WRITTEN_MAX: usize = 4 << 20;

/// Returns the spans within an element that have their own times, with these times.
pub(super) fn find_timed_spans<'a>(
    clock: &TtmlClock,
    element: &'a XmlElement,
    time: TtmlInterval,
) -> Vec<(&'a XmlElement, TtmlInterval)> {
    let mut found = Vec::new();
    collect_timed_spans(clock, element, time, &mut found);
    found
}

fn collect_timed_spans<'a>(
    clock: &TtmlClock,
    element: &'a XmlElement,
    time: TtmlInterval,
    found: &mut Vec<(&'a XmlElement, TtmlInterval)>,
) {
    for span in element.children_named("span") {
        let own = clock.resolve_interval(span, time);
        if clock.is_timed(span) {
            found.push((span, own));
        }
        collect_timed_spans(clock, span, own, found);
    }
}

/// Returns whether all timed spans of a paragraph are its direct children, and the paragraph has no
/// other text. `count` is the number of its timed spans.
pub(super) fn has_only_timed_spans(clock: &TtmlClock, p: &XmlElement, count: usize) -> bool {
    let spans = p.children_named("span");
    let direct = spans.filter(|span| clock.is_timed(span)).count();
    direct == count && !has_untimed_text(clock, p)
}

fn has_untimed_text(clock: &TtmlClock, element: &XmlElement) -> bool {
    let mut spans = element.children_named("span");
    !element.text.trim().is_empty()
        || spans.any(|span| !clock.is_timed(span) && has_untimed_text(clock, span))
}

/// Splits the time of a paragraph at each change of the shown spans, and returns the parts.
pub(super) fn list_span_intervals(
    time: TtmlInterval,
    timed: &[(&XmlElement, TtmlInterval)],
) -> Vec<TtmlInterval> {
    let shown = timed.iter().filter(|(_, time)| time.0 < time.1);
    let changes = shown.flat_map(|(_, time)| [time.0, time.1]);
    let mut bounds: Vec<i64> = changes
        .filter(|at| (time.0..time.1).contains(at))
        .chain([time.0, time.1])
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Returns whether a child is a span that is not hidden.
pub(super) fn is_visible_span(child: &XmlElement, hidden: &[&XmlElement]) -> bool {
    child.name == "span" && !hidden.iter().any(|span| ptr::eq(*span, child))
}

/// Returns whether an element has text outside of the `hidden` spans.
pub(super) fn has_text(element: &XmlElement, hidden: &[&XmlElement]) -> bool {
    element.nodes().any(|node| match node {
        XmlNode::Text(text) => !text.trim().is_empty(),
        XmlNode::Element(child) => is_visible_span(child, hidden) && has_text(child, hidden),
    })
}

/// Counts the elements and bytes of text within an element.
pub(super) fn count_content(element: &XmlElement) -> usize {
    let children = element.children.iter().map(count_content);
    1 + element.text.len() + children.sum::<usize>()
}
