//! Decoding of text files in UTF-8, UTF-16 or Windows-1252.

use super::CueProblem;
use super::cue::report_problem;
use std::borrow::Cow;

/// Characters of Windows-1252 from 0x80 to 0x9f. Other decoders convert the five unassigned bytes
/// to control characters, but this table converts these bytes to spaces.
const WINDOWS_1252: [char; 32] = [
    '€', ' ', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', ' ', 'Ž', ' ', ' ', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', ' ', 'ž', 'Ÿ',
];

/// Decodes a text file. A file that is not valid UTF-8 and has no byte order mark is decoded as
/// Windows-1252, which most old subtitles use.
pub fn decode_text<'a>(bytes: &'a [u8], problems: &mut Vec<CueProblem>) -> Cow<'a, str> {
    let utf16 = |rest: &[u8], convert: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).map(|unit| convert([unit[0], unit[1]]));
        let chars = char::decode_utf16(units);
        chars
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                report_problem(problems, CueProblem::NotUnicode);
                Cow::Owned(
                    bytes
                        .iter()
                        .map(|byte| decode_windows_1252(*byte))
                        .collect(),
                )
            }
        },
    }
}

fn decode_windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        byte => byte.into(),
    }
}
