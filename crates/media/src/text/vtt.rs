//! WebVTT (W3C Candidate Recommendation): parsing, and writing as one file or as HLS segments.

use super::cue::report_problem;
use super::timestamp::{CueTimestampDisplay, parse_timestamp};
use super::{Cue, CueList, CueProblem};
use crate::manifest::SegmentFormat;
use crate::time::Time;
use crate::ts::TIMESTAMP_OFFSET_90KHZ;
use std::fmt::Write;
use std::iter::Peekable;
use std::ops::Range;

/// Separates the start time of a cue from its end time.
pub(super) const ARROW: &str = "-->";

/// Parses WebVTT. Unknown blocks are dropped, as the standard requires (6.1).
pub fn parse_vtt(text: &str, problems: &mut Vec<CueProblem>) -> CueList {
    let text = unify_line_ends(text).replace('\0', "\u{fffd}");
    let mut lines = text.lines().enumerate().peekable();
    let (mut header, mut cues) = (Vec::new(), Vec::new());
    if !lines
        .peek()
        .is_some_and(|(_, line)| line.starts_with("WEBVTT"))
    {
        report_problem(problems, CueProblem::Malformed(1));
    }
    while let Some((number, first)) = lines.next() {
        let timing = match lines.peek() {
            _ if first.contains(ARROW) => Some((first, "")),
            Some((_, second)) if second.contains(ARROW) && !first.is_empty() => {
                lines.next().map(|(_, second)| (second, first))
            }
            _ => None,
        };
        let block = read_block(&mut lines);
        match timing {
            Some((timing, id)) => match parse_timing(timing) {
                Some(cue) => cues.push(Cue {
                    id: id.trim().to_owned(),
                    payload: block,
                    ..cue
                }),
                None => report_problem(problems, CueProblem::Malformed(number + 1)),
            },
            None if cues.is_empty() && is_header_block(first) && !block.is_empty() => {
                header.push(format!("{}\n{block}", first.trim_end()));
            }
            None => {}
        }
    }
    CueList::from_cues(header.join("\n\n"), cues, problems)
}

/// Replaces `\r\n` and `\r` with `\n`, because players treat all three as the end of a line.
pub(super) fn unify_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Reads the lines of a block. A blank line ends the block. A line with an arrow also ends the
/// block, and starts the next cue.
fn read_block<'a>(lines: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>) -> String {
    let mut block = Vec::new();
    while let Some((_, line)) = lines.next_if(|(_, line)| !line.contains(ARROW)) {
        if line.is_empty() {
            break;
        }
        block.push(line);
    }
    block.join("\n")
}

fn is_header_block(line: &str) -> bool {
    matches!(line.trim_end(), "STYLE" | "REGION")
}

/// Parses the timing line of a cue, such as `00:01.000 --> 00:02.000 line:0`.
pub(super) fn parse_timing(line: &str) -> Option<Cue> {
    let (start, rest) = line.split_once(ARROW)?;
    let rest = rest.trim();
    let (end, settings) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    Some(Cue {
        start_ms: parse_timestamp(start.trim())?,
        end_ms: parse_timestamp(end)?,
        settings: settings.split_whitespace().collect::<Vec<_>>().join(" "),
        ..Cue::default()
    })
}

/// Writes all cues as one file.
pub fn write_vtt(list: &CueList) -> String {
    let mut out = String::with_capacity(64 + list.cues().len() * 80);
    write_vtt_header(&mut out, list, "");
    list.cues().iter().for_each(|cue| write_cue(&mut out, cue));
    out
}

/// Writes an HLS segment with the cues that are shown within `shown_ms`. Times count from the start
/// of the film.
///
/// `zero` is the start of the film on the timeline of the accompanying media. `X-TIMESTAMP-MAP`
/// contains this time on the clock of the media container, so that players need not guess the time
/// (RFC 8216, 3.5).
pub fn write_vtt_segment(
    list: &CueList,
    shown_ms: Range<i64>,
    zero: Time,
    format: SegmentFormat,
) -> String {
    let mut out = String::with_capacity(512 + list.header.len());
    let offset = match format {
        SegmentFormat::Cmaf => 0,
        SegmentFormat::Ts => TIMESTAMP_OFFSET_90KHZ,
    };
    // Timestamps of transport streams have 33 bits.
    let clock = (zero.round_to(90_000).max(0) as u64).wrapping_add(offset) & ((1 << 33) - 1);
    let map = format!("X-TIMESTAMP-MAP=MPEGTS:{clock},LOCAL:00:00:00.000\n");
    write_vtt_header(&mut out, list, &map);
    list.cues_within(shown_ms)
        .for_each(|cue| write_cue(&mut out, cue));
    out
}

fn write_vtt_header(out: &mut String, list: &CueList, map: &str) {
    let _ = write!(out, "WEBVTT\n{map}\n");
    if !list.header.is_empty() {
        let _ = write!(out, "{}\n\n", list.header);
    }
}

fn write_cue(out: &mut String, cue: &Cue) {
    if !cue.id.is_empty() {
        let _ = writeln!(out, "{}", cue.id);
    }
    let _ = write!(
        out,
        "{} {ARROW} {}",
        CueTimestampDisplay(cue.start_ms),
        CueTimestampDisplay(cue.end_ms)
    );
    if !cue.settings.is_empty() {
        let _ = write!(out, " {}", cue.settings);
    }
    let _ = write!(out, "\n{}\n\n", cue.payload);
}
