//! Base64 (RFC 4648, 4).

/// Encodes bytes.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let index = word >> (18 - 6 * digit) & 63;
            let used = digit <= chunk.len();
            out.push(if used {
                DIGITS[index as usize] as char
            } else {
                '='
            });
        }
    }
    out
}

/// Decodes text, which may contain white space; `None` if it is not padded base64.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let padding = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'=')
        .count();
    let used = digits.get(..digits.len() - padding)?;
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(used.len() * 3 / 4);
    for group in used.chunks(4) {
        let word = group
            .iter()
            .try_fold(0u32, |word, digit| Some(word << 6 | decode_digit(*digit)?))?;
        let word = word << (6 * (4 - group.len()));
        let bytes = word.to_be_bytes();
        out.extend_from_slice(bytes.get(1..group.len())?);
    }
    Some(out)
}

fn decode_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
