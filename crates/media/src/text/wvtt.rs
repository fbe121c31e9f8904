//! Samples of WebVTT tracks (ISO/IEC 14496-30, 7).

use super::Cue;
use crate::bmff::BoxIterator;

/// Maximum number of cues of a sample. Further cues are left out.
pub(super) const CUES_PER_SAMPLE_MAX: usize = 64;

/// Length of a sample without text, in bytes. It contains only an empty `vtte` box.
pub(super) const EMPTY_SAMPLE_BYTES: u32 = 8;

/// Returns the cues of a sample, without times. A sample with only a `vtte` box has no cues.
pub fn parse_wvtt_sample(sample: &[u8]) -> Vec<Cue> {
    let boxes = BoxIterator::new(sample, 0).map_while(Result::ok);
    let cues = boxes.filter(|found| found.name == *b"vttc");
    cues.take(CUES_PER_SAMPLE_MAX)
        .map(|cue| parse_vttc_cue(cue.body))
        .collect()
}

fn parse_vttc_cue(body: &[u8]) -> Cue {
    let mut cue = Cue::default();
    for part in BoxIterator::new(body, 0).map_while(Result::ok) {
        let text = || String::from_utf8_lossy(part.body).replace('\0', "");
        match &part.name {
            b"iden" => cue.id = join_into_single_line(&text()),
            b"sttg" => cue.settings = join_into_single_line(&text()),
            b"payl" => cue.payload = remove_blank_lines(&text()),
            _ => {}
        }
    }
    cue
}

/// Returns the `STYLE` and `REGION` blocks of a sample entry.
pub(super) fn read_wvtt_entry_header(sample_entry: &[u8]) -> String {
    let children = sample_entry.get(16..).unwrap_or_default();
    let mut boxes = BoxIterator::new(children, 0).map_while(Result::ok);
    let config = boxes.find(|found| found.name == *b"vttC");
    let text = config.map(|config| String::from_utf8_lossy(config.body).into_owned());
    super::parse_vtt(&text.unwrap_or_default(), &mut Vec::new()).header
}

/// Joins the lines of an identifier or of settings into a single line, as WebVTT requires. Arrows
/// are removed.
fn join_into_single_line(text: &str) -> String {
    text.replace(super::vtt::ARROW, "")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Removes blank lines, which would end the cue, and escapes arrows, which would start another cue.
pub(super) fn remove_blank_lines(text: &str) -> String {
    let text = text
        .replace('\r', "\n")
        .replace(super::vtt::ARROW, "--&gt;");
    let lines: Vec<&str> = text.split('\n').filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}
