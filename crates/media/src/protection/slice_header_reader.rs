//! Reads slice headers from NAL units that contain emulation prevention bytes.

use crate::codec::bit_reader::remove_emulation_prevention;

/// Bytes of a NAL unit in which a slice header ends. The longest legal ones have some hundred bytes;
/// long lists of entry points stay below this limit, too.
const HEADER_BYTES_MAX: usize = 4096;

/// Returns the start of a NAL unit without emulation prevention bytes.
pub(super) fn read_header_start(nal: &[u8]) -> Vec<u8> {
    remove_emulation_prevention(nal.get(..HEADER_BYTES_MAX).unwrap_or(nal))
}

/// Returns the shortest start of `nal` that contains `len` bytes besides emulation prevention bytes.
pub(super) fn stored_len(nal: &[u8], len: usize) -> usize {
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

/// Returns the bits of a fixed-length code for `count` values: `Ceil(Log2(count))`.
pub(super) fn ceil_log2(count: u32) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}
