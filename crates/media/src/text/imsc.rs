//! IMSC text documents in CMAF (W3C IMSC 1.0.1; ISO/IEC 14496-30, 6). Each segment contains one
//! document.
//!
//! Times in a document count from the start of the track, as the standard requires, not from the
//! start of the segment.

use super::cmaf::{write_text_fragment, write_text_init};
use super::imsc_inline::write_inline_content;
use super::imsc_region::describe_region;
use super::timestamp::CueTimestampDisplay;
use super::{CueList, TextSegmentTimes};
use crate::bytes::write_box;
use crate::codec::TextFormat;
use crate::manifest::escaping::XmlText;
use crate::time::Time;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

/// RFC 6381 codec string of the segments.
pub const IMSC_CODEC: &str = "stpp.ttml.im1t";

const NAMESPACES: &str = "xmlns=\"http://www.w3.org/ns/ttml\" xmlns:ttp=\"http://www.w3.org/ns/ttml#parameter\" xmlns:tts=\"http://www.w3.org/ns/ttml#styling\" ttp:profile=\"http://www.w3.org/ns/ttml/profile/imsc1/text\" ttp:timeBase=\"media\"";

/// Writes the init segment of a rendition.
pub fn write_imsc_init(grid: &TextSegmentTimes<'_>, language: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    write_box(&mut entry, b"stpp", |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
        // namespace, empty schema_location, empty auxiliary_mime_types
        out.extend_from_slice(b"http://www.w3.org/ns/ttml\0\0\0");
    });
    write_text_init(grid, language, entry, (TextFormat::Stpp, IMSC_CODEC))
}

/// Writes media segment `n`. Its document contains the cues that are shown during the segment,
/// limited to the times of the segment. `language` is a BCP 47 tag.
pub fn write_imsc_segment(
    grid: &TextSegmentTimes<'_>,
    language: Option<&str>,
    list: &CueList,
    n: usize,
) -> Vec<u8> {
    let (start, end) = (grid.segment_start(n), grid.segment_start(n + 1));
    let ms = |ticks: u64| {
        Time::new(i64::try_from(ticks).unwrap_or(i64::MAX), grid.timescale()).round_to(1000)
    };
    let document = write_imsc_document(grid, language, list, n, ms(start)..ms(end));
    write_text_fragment(
        start,
        n,
        &[(end.saturating_sub(start), document.into_bytes())],
    )
}

fn write_imsc_document(
    grid: &TextSegmentTimes<'_>,
    language: Option<&str>,
    list: &CueList,
    n: usize,
    shown_ms: Range<i64>,
) -> String {
    let zero_ms = grid.served_film_start().round_to(1000);
    let (mut layout, mut body) = (String::new(), String::new());
    let mut regions: HashMap<String, usize> = HashMap::new();
    for cue in grid.cues_of_segment(list, n) {
        let start = cue.start_ms.saturating_add(zero_ms).max(shown_ms.start);
        let end = cue.end_ms.saturating_add(zero_ms).min(shown_ms.end);
        if start >= end {
            continue;
        }
        let (next, region) = (regions.len(), describe_region(&cue.settings));
        let region = *regions.entry(region).or_insert_with_key(|region| {
            let _ = write!(layout, "<region xml:id=\"r{next}\" {region}/>");
            next
        });
        let (start, end) = (CueTimestampDisplay(start), CueTimestampDisplay(end));
        let _ = write!(
            body,
            "<p region=\"r{region}\" begin=\"{start}\" end=\"{end}\">"
        );
        write_inline_content(&mut body, &cue.payload);
        body.push_str("</p>");
    }
    let language = XmlText(language.unwrap_or_default());
    let body = match body.is_empty() {
        true => body,
        false => format!("<div>{body}</div>"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><tt {NAMESPACES} xml:lang=\"{language}\"><head><layout>{layout}</layout></head><body>{body}</body></tt>"
    )
}
