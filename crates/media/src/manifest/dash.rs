//! Writes DASH MPDs (ISO/IEC 23009-1). The order of elements follows the schema.

mod elements;
mod segment_template;
mod sets;
mod text_sets;

pub use segment_template::TemplateAddressing;

use super::escaping::XmlDuration;
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use segment_template::write_segment_template;
use sets::{AdaptationSet, group_into_sets, list_switchable_sets};
use std::fmt::Write;

/// Writes the MPD of a presentation. The MPD is static, with one Period, and lists segments in
/// SegmentTimelines.
pub fn write_mpd(presentation: &Presentation, template: TemplateAddressing) -> String {
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
        presentation.segment_folder_name()
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
    template: TemplateAddressing,
    (id, switchable): (usize, &[usize]),
    set: &AdaptationSet,
) {
    set.write_adaptation_set_start(out, presentation, (id, switchable));
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
