//! Writes SegmentTemplate and SegmentTimeline elements.

use crate::manifest::url;
use crate::presentation::{Presentation, Rendition};
use std::fmt::Write;

/// Addressing of segments in a `SegmentTemplate` (ISO/IEC 23009-1, 5.3.9.4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TemplateAddressing {
    /// By start time, with `$Time$`.
    #[default]
    Time,
    /// By number, with `$Number$`. Numbers count from 1.
    Number,
}

pub(super) fn write_segment_template(
    out: &mut String,
    presentation: &Presentation,
    template: TemplateAddressing,
    rendition: &Rendition,
    indent: &str,
) {
    let timescale = presentation.track(rendition).timescale;
    let _ = write!(out, "{indent}<SegmentTemplate timescale=\"{timescale}\"");
    let offset = presentation.presentation_time_offset.round_to(timescale);
    if offset != 0 {
        let _ = write!(out, " presentationTimeOffset=\"{offset}\"");
    }
    let media = match template {
        TemplateAddressing::Time => url::TIME_TEMPLATE,
        TemplateAddressing::Number => url::NUMBER_TEMPLATE,
    };
    let _ = write!(
        out,
        " initialization=\"{}\" media=\"{media}\"",
        url::INIT_TEMPLATE
    );
    if template == TemplateAddressing::Number {
        out.push_str(" startNumber=\"1\"");
    }
    out.push_str(">\n");
    let start = |n| presentation.segment_start(rendition, n);
    let inner = format!("{indent}  ");
    write_segment_timeline(out, &inner, rendition.segment_count(), start);
    let _ = writeln!(out, "{indent}</SegmentTemplate>");
}

/// Writes the times of `count` segments. `start(n)` returns the start of segment `n`, and
/// `start(count)` returns the end of the last segment.
pub(super) fn write_segment_timeline(
    out: &mut String,
    indent: &str,
    count: usize,
    start: impl Fn(usize) -> u64,
) {
    let ticks = |n| start(n + 1) - start(n);
    let _ = writeln!(out, "{indent}<SegmentTimeline>");
    let mut n = 0;
    while n < count {
        let duration = ticks(n);
        let mut end = n + 1;
        while end < count && ticks(end) == duration {
            end += 1;
        }
        let _ = write!(out, "{indent}  <S");
        if n == 0 {
            let _ = write!(out, " t=\"{}\"", start(0));
        }
        let _ = write!(out, " d=\"{duration}\"");
        if end - n > 1 {
            let _ = write!(out, " r=\"{}\"", end - n - 1);
        }
        out.push_str("/>\n");
        n = end;
    }
    let _ = writeln!(out, "{indent}</SegmentTimeline>");
}
