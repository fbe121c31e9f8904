//! Reads slice headers from NAL units that contain emulation prevention bytes.

use crate::codec::bit_reader::remove_emulation_prevention;

/// Nearly all slice headers end within this number of bytes from the start of the NAL unit. The
/// first attempt to parse a header uses only these bytes. This saves time, because the removal of
/// emulation prevention bytes visits every byte and a segment has many slices.
const USUAL_HEADER_BYTES: usize = 128;

/// Maximum number of bytes from the start of a NAL unit to the end of its slice header. Without
/// entry points, the longest legal headers have a few hundred bytes. Even headers with long lists
/// of entry points stay below this limit.
const HEADER_BYTES_MAX: usize = 4096;

/// Returns the stored length of a slice's headers in bytes, including emulation prevention bytes.
/// `parse` receives the first bytes of the NAL unit, without emulation prevention bytes. `parse`
/// returns the length of the headers, or `None` if the headers do not end within these bytes.
pub(super) fn measure_slice_headers(
    nal: &[u8],
    parse: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let parse_start = |start: &[u8]| parse(&remove_emulation_prevention(start));
    let usual = nal.get(..USUAL_HEADER_BYTES).and_then(parse_start);
    let len = usual.or_else(|| parse_start(nal.get(..HEADER_BYTES_MAX).unwrap_or(nal)));
    len.map(|len| len_with_emulation_prevention(nal, len))
}

/// Returns the length of the shortest prefix of `nal` that contains `len` bytes, not counting
/// emulation prevention bytes.
pub(super) fn len_with_emulation_prevention(nal: &[u8], len: usize) -> usize {
    let (mut zeros, mut left) = (0, len);
    for (at, &byte) in nal.iter().enumerate() {
        if left == 0 {
            return at;
        }
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        left -= 1;
    }
    nal.len()
}

/// Returns the number of bits of a fixed-length code for `count` values: `Ceil(Log2(count))`.
pub(super) fn ceil_log2(count: u32) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_longer_than_usual_are_parsed_from_a_longer_start() {
        // The headers have 1,000 bytes, plus one emulation prevention byte between these bytes.
        let mut nal = vec![1; 5000];
        nal[500..503].copy_from_slice(&[0, 0, 3]);
        let parse = |start: &[u8]| (start.len() >= 1000).then_some(1000);
        assert_eq!(measure_slice_headers(&nal, parse), Some(1001));
        assert_eq!(measure_slice_headers(&nal[..900], parse), None);
        assert_eq!(
            measure_slice_headers(&nal, |start| Some(start.len())),
            Some(128)
        );
    }
}
