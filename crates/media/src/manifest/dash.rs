//! Writing of DASH MPDs (ISO/IEC 23009-1). The order of elements follows the schema.

mod sets;
mod text_sets;

use super::text::{XmlDuration, XmlText};
use super::url;
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use sets::{AdaptationSet, group_into_sets, list_switchable_sets};
use std::fmt::Write;

/// Addressing of segments in a `SegmentTemplate` (ISO/IEC 23009-1, 5.3.9.4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SegmentAddressing {
    /// `$Time$`: by start time.
    #[default]
    Time,
    /// `$Number$`: by number, counted from 1.
    Number,
}

/// Writes the MPD of a presentation: static, one period, SegmentTimeline.
pub fn write_mpd(presentation: &Presentation, template: SegmentAddressing) -> String {
    let mut out = String::with_capacity(2048 + 1024 * presentation.renditions.len());
    let longest = presentation.renditions.iter().flat_map(|rendition| {
        let ticks = (0..rendition.segment_count())
            .map(|n| presentation.segment_duration_ticks(rendition, n));
        let timescale = presentation.track(rendition).timescale;
        ticks.max().map(|ticks| Time::new(ticks as i64, timescale))
    });
    let longest = longest.max().unwrap_or(Time::ZERO);
    let sets = group_into_sets(presentation);
    let supplemental = presentation.renditions.iter().any(|rendition| {
        presentation
            .track(rendition)
            .codec
            .supplemental_codecs
            .is_some()
    });
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"",
    );
    if supplemental {
        out.push_str(" xmlns:scte214=\"urn:scte:dash:scte214-extensions\"");
    }
    if presentation.protection.is_some() {
        out.push_str(sets::PROTECTION_NAMESPACES);
    }
    let _ = writeln!(
        out,
        " profiles=\"urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019\" type=\"static\" mediaPresentationDuration=\"{}\" maxSegmentDuration=\"{}\" minBufferTime=\"{}\">",
        XmlDuration(presentation.duration),
        XmlDuration(longest),
        XmlDuration(longest),
    );
    let _ = writeln!(
        out,
        "  <BaseURL>{}/</BaseURL>",
        presentation.segment_set_name()
    );
    out.push_str("  <Period id=\"1\" start=\"PT0S\">\n");
    for (id, set) in sets.iter().enumerate() {
        let switchable = list_switchable_sets(&sets, id);
        write_adaptation_set(&mut out, presentation, template, (id + 1, &switchable), set);
    }
    text_sets::write_text_sets(&mut out, presentation, template, sets.len() + 1);
    out.push_str("  </Period>\n</MPD>\n");
    out
}

fn write_adaptation_set(
    out: &mut String,
    presentation: &Presentation,
    template: SegmentAddressing,
    (id, switchable): (usize, &[usize]),
    set: &AdaptationSet,
) {
    set.write_start(out, presentation, (id, switchable));
    let shared = set
        .renditions
        .windows(2)
        .all(|pair| has_same_timeline(presentation, pair[0], pair[1]));
    if shared {
        write_segment_template(out, presentation, template, set.renditions[0], "      ");
    }
    for rendition in &set.renditions {
        set.write_representation(out, presentation, rendition);
        if shared {
            out.push_str("/>\n");
        } else {
            out.push_str(">\n");
            write_segment_template(out, presentation, template, rendition, "        ");
            out.push_str("      </Representation>\n");
        }
    }
    out.push_str("    </AdaptationSet>\n");
}

/// Returns whether one SegmentTimeline is correct for both renditions.
fn has_same_timeline(presentation: &Presentation, a: &Rendition, b: &Rendition) -> bool {
    let timescale = |r| presentation.track(r).timescale;
    let starts = |r, n| presentation.segment_start(r, n);
    timescale(a) == timescale(b)
        && a.segment_count() == b.segment_count()
        && (0..=a.segment_count()).all(|n| starts(a, n) == starts(b, n))
}

fn write_segment_template(
    out: &mut String,
    presentation: &Presentation,
    template: SegmentAddressing,
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
        SegmentAddressing::Time => url::TIME_TEMPLATE,
        SegmentAddressing::Number => url::NUMBER_TEMPLATE,
    };
    let _ = write!(
        out,
        " initialization=\"{}\" media=\"{media}\"",
        url::INIT_TEMPLATE
    );
    if template == SegmentAddressing::Number {
        out.push_str(" startNumber=\"1\"");
    }
    out.push_str(">\n");
    let start = |n| presentation.segment_start(rendition, n);
    let inner = format!("{indent}  ");
    write_segment_timeline(out, &inner, rendition.segment_count(), start);
    let _ = writeln!(out, "{indent}</SegmentTemplate>");
}

/// Writes the times of `count` segments. `start` returns the start of each, and the end of the last.
fn write_segment_timeline(
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

/// Writes ` name="value"` with the value escaped.
fn write_attribute(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, " {name}=\"{}\"", XmlText(&value.to_string()));
}
