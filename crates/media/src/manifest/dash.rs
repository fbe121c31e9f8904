//! DASH MPDs (ISO/IEC 23009-1), as text. The order of elements is the schema's.

mod sets;

use super::text::{Xml, XmlDuration};
use super::url;
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use sets::{Set, sets};
use std::fmt::Write;

/// How segments are addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Template {
    /// `$Time$`: by name.
    #[default]
    Time,
    /// `$Number$`: by place, from 1.
    Number,
}

/// The MPD of a presentation: static, one period, SegmentTimeline.
pub fn mpd(presentation: &Presentation, template: Template) -> String {
    let mut out = String::with_capacity(2048 + 1024 * presentation.renditions.len());
    let longest = presentation.renditions.iter().flat_map(|rendition| {
        let ticks = (0..rendition.segments()).map(|n| presentation.segment_ticks(rendition, n));
        let timescale = presentation.track(rendition).timescale;
        ticks.max().map(|ticks| Time::new(ticks as i64, timescale))
    });
    let longest = longest.max().unwrap_or(Time::ZERO);
    let sets = sets(presentation);
    let supplemental = presentation
        .renditions
        .iter()
        .any(|rendition| presentation.track(rendition).codec.supplemental.is_some());
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"",
    );
    if supplemental {
        out.push_str(" xmlns:scte214=\"urn:scte:dash:scte214-extensions\"");
    }
    let _ = writeln!(
        out,
        " profiles=\"urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019\" type=\"static\" mediaPresentationDuration=\"{}\" maxSegmentDuration=\"{}\" minBufferTime=\"{}\">",
        XmlDuration(presentation.duration),
        XmlDuration(longest),
        XmlDuration(longest),
    );
    let _ = writeln!(out, "  <BaseURL>{}/</BaseURL>", presentation.set_name());
    out.push_str("  <Period id=\"1\" start=\"PT0S\">\n");
    for (id, set) in sets.iter().enumerate() {
        adaptation_set(&mut out, presentation, template, id + 1, set);
    }
    out.push_str("  </Period>\n</MPD>\n");
    out
}

fn adaptation_set(
    out: &mut String,
    presentation: &Presentation,
    template: Template,
    id: usize,
    set: &Set,
) {
    set.open(out, presentation, id);
    let shared = set
        .renditions
        .windows(2)
        .all(|pair| same_timeline(presentation, pair[0], pair[1]));
    if shared {
        segment_template(out, presentation, template, set.renditions[0], "      ");
    }
    for rendition in &set.renditions {
        set.representation(out, presentation, rendition);
        if shared {
            out.push_str("/>\n");
        } else {
            out.push_str(">\n");
            segment_template(out, presentation, template, rendition, "        ");
            out.push_str("      </Representation>\n");
        }
    }
    out.push_str("    </AdaptationSet>\n");
}

/// Whether one SegmentTimeline says the truth of both.
fn same_timeline(presentation: &Presentation, a: &Rendition, b: &Rendition) -> bool {
    let timescale = |r| presentation.track(r).timescale;
    let starts = |r, n| presentation.segment_start(r, n);
    timescale(a) == timescale(b)
        && a.segments() == b.segments()
        && (0..=a.segments()).all(|n| starts(a, n) == starts(b, n))
}

fn segment_template(
    out: &mut String,
    presentation: &Presentation,
    template: Template,
    rendition: &Rendition,
    indent: &str,
) {
    let timescale = presentation.track(rendition).timescale;
    let _ = write!(out, "{indent}<SegmentTemplate timescale=\"{timescale}\"");
    let offset = presentation.zero.round_to(timescale);
    if offset != 0 {
        let _ = write!(out, " presentationTimeOffset=\"{offset}\"");
    }
    let media = match template {
        Template::Time => url::TIME_TEMPLATE,
        Template::Number => url::NUMBER_TEMPLATE,
    };
    let _ = write!(
        out,
        " initialization=\"{}\" media=\"{media}\"",
        url::INIT_TEMPLATE
    );
    if template == Template::Number {
        out.push_str(" startNumber=\"1\"");
    }
    let _ = writeln!(out, ">\n{indent}  <SegmentTimeline>");
    let mut n = 0;
    while n < rendition.segments() {
        let ticks = presentation.segment_ticks(rendition, n);
        let mut end = n + 1;
        while end < rendition.segments() && presentation.segment_ticks(rendition, end) == ticks {
            end += 1;
        }
        let _ = write!(out, "{indent}    <S");
        if n == 0 {
            let _ = write!(out, " t=\"{}\"", presentation.segment_start(rendition, 0));
        }
        let _ = write!(out, " d=\"{ticks}\"");
        if end - n > 1 {
            let _ = write!(out, " r=\"{}\"", end - n - 1);
        }
        out.push_str("/>\n");
        n = end;
    }
    let _ = writeln!(
        out,
        "{indent}  </SegmentTimeline>\n{indent}</SegmentTemplate>"
    );
}

/// ` name="value"`, with the value made safe.
fn attribute(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, " {name}=\"{}\"", Xml(&value.to_string()));
}
