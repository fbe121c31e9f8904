//! Samples of 3GPP timed text (3GPP TS 26.245, 5.17), the most common text in MP4 files.

use super::Cue;
use super::srt::push_vtt_escaped;
use super::wvtt::remove_blank_lines;
use crate::bmff::BoxIterator;
use crate::bytes::ByteReader;

/// Bit of `displayFlags` that is set if all samples of the track are forced subtitles (QuickTime
/// File Format).
const ALL_SAMPLES_FORCED: u32 = 0x8000_0000;

/// Bits of `face-style-flags`, each with its WebVTT tag.
const FACES: [(u8, &str); 3] = [(1, "b"), (2, "i"), (4, "u")];

/// Length of a sample without text, in bytes. It contains only the length field of the text.
pub(super) const EMPTY_SAMPLE_BYTES: u32 = 2;

/// Returns the cue of a sample, without times. `None` if the sample shows nothing.
pub fn parse_tx3g_sample(sample: &[u8]) -> Option<Cue> {
    let mut reader = ByteReader::new(sample);
    let len = usize::from(reader.u16());
    let text = decode_sample_text(reader.take(len));
    let faces = read_styl_box(reader.remaining_slice(), text.chars().count());
    let payload = remove_blank_lines(&write_markup(&text, &faces));
    (!payload.trim().is_empty()).then(|| Cue {
        payload,
        ..Cue::default()
    })
}

/// Returns whether a sample entry declares that the text of the track is always shown (forced).
pub(super) fn is_forced_track(sample_entry: &[u8]) -> bool {
    let mut reader = ByteReader::new(sample_entry);
    reader.skip(16);
    reader.u32() & ALL_SAMPLES_FORCED != 0
}

/// Decodes UTF-8, or UTF-16 with a byte order mark.
fn decode_sample_text(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] => {
            super::decode_text(bytes, &mut Vec::new()).into_owned()
        }
        bytes => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Returns the font style of each character, as bits of [`FACES`].
fn read_styl_box(modifiers: &[u8], chars: usize) -> Vec<u8> {
    let mut faces = vec![0; chars];
    let boxes = BoxIterator::new(modifiers, 0).map_while(Result::ok);
    for style in boxes.filter(|found| found.name == *b"styl").take(1) {
        let mut reader = ByteReader::new(style.body);
        for _ in 0..reader.u16() {
            let (start, end) = (usize::from(reader.u16()), usize::from(reader.u16()));
            reader.skip(2);
            let face = reader.u8();
            reader.skip(5);
            if reader.check_no_short_read().is_err() {
                break;
            }
            let styled = faces.get_mut(start..end.min(chars)).unwrap_or_default();
            styled.iter_mut().for_each(|known| *known |= face);
        }
    }
    faces
}

/// Writes WebVTT cue text. At each change of the font style, all open tags are closed in reverse
/// order before the new tags are opened.
fn write_markup(text: &str, faces: &[u8]) -> String {
    let (mut out, mut open) = (String::with_capacity(text.len()), 0);
    for (c, face) in text.chars().zip(faces.iter().copied()) {
        if face & 7 != open {
            write_style_tags(&mut out, open, true);
            open = face & 7;
            write_style_tags(&mut out, open, false);
        }
        push_vtt_escaped(&mut out, c);
    }
    write_style_tags(&mut out, open, true);
    out
}

fn write_style_tags(out: &mut String, face: u8, is_end: bool) {
    let used = FACES.iter().filter(|(bit, _)| face & bit != 0);
    let tags: Vec<String> = match is_end {
        true => used.rev().map(|(_, tag)| format!("</{tag}>")).collect(),
        false => used.map(|(_, tag)| format!("<{tag}>")).collect(),
    };
    out.extend(tags);
}
