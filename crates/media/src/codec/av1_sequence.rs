//! Reads the colour from AV1 sequence headers (AV1 specification, 5.5) in the `configOBUs` of
//! `av1C`.

use super::CicpColor;
use super::bit_reader::BitReader;

/// Reads the colour of the first sequence header among `obus`. Returns `None` if the header is
/// truncated or does not specify a colour.
pub fn read_color(obus: &[u8]) -> Option<CicpColor> {
    let mut bits = BitReader::new(find_sequence_header(obus)?);
    let profile = bits.read_bits(3);
    bits.skip(1); // still_picture
    let reduced = bits.read_bit();
    if reduced {
        bits.skip(5); // seq_level_idx
    } else {
        skip_operating_points(&mut bits);
    }
    let (wide, high) = (bits.read_bits(4) as usize, bits.read_bits(4) as usize);
    bits.skip(wide + 1 + high + 1);
    if !reduced && bits.read_bit() {
        bits.skip(4 + 3); // frame id lengths
    }
    bits.skip(3); // superblock size, filter intra, intra edge filter
    if !reduced {
        skip_tools(&mut bits);
    }
    bits.skip(3); // superres, cdef, restoration
    let color = read_color_config(&mut bits, profile);
    color.filter(|_| !bits.is_past_end())
}

/// Returns the payload of the first sequence header among `configOBUs`.
fn find_sequence_header(mut obus: &[u8]) -> Option<&[u8]> {
    while let [head, rest @ ..] = obus {
        let extension = usize::from(head >> 2 & 1);
        let rest = rest.get(extension..)?;
        let (size, rest) = if head & 2 == 0 {
            (rest.len(), rest)
        } else {
            read_leb128(rest)?
        };
        let (payload, after) = rest.split_at_checked(size)?;
        if head >> 3 & 15 == 1 {
            return Some(payload);
        }
        obus = after;
    }
    None
}

/// Reads a `leb128()` number (4.10.5), and returns the number and the bytes after it.
fn read_leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().enumerate().take(8) {
        value |= u64::from(byte & 0x7f) << (n * 7);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[n + 1..]));
        }
    }
    None
}

/// Skips the fields from `timing_info_present_flag` to the last operating point.
fn skip_operating_points(bits: &mut BitReader<'_>) {
    let mut delay_length = None;
    if bits.read_bit() {
        bits.skip(64); // num_units_in_display_tick, time_scale
        if bits.read_bit() {
            bits.read_ue(); // num_ticks_per_picture_minus_1, in Exp-Golomb code
        }
        if bits.read_bit() {
            delay_length = Some(bits.read_bits(5) as usize + 1);
            bits.skip(32 + 5 + 5);
        }
    }
    let display_delay = bits.read_bit();
    for _ in 0..=bits.read_bits(5) {
        bits.skip(12);
        if bits.read_bits(5) > 7 {
            bits.skip(1); // seq_tier
        }
        if let Some(length) = delay_length
            && bits.read_bit()
        {
            bits.skip(length * 2 + 1);
        }
        if display_delay && bits.read_bit() {
            bits.skip(4);
        }
    }
}

/// Skips the fields from `enable_interintra_compound` to `order_hint_bits`.
fn skip_tools(bits: &mut BitReader<'_>) {
    bits.skip(4);
    let order_hint = bits.read_bit();
    if order_hint {
        bits.skip(2);
    }
    let screen_content = bits.read_bit() || bits.read_bit();
    if screen_content && !bits.read_bit() {
        bits.skip(1); // seq_force_integer_mv
    }
    if order_hint {
        bits.skip(3);
    }
}

/// Reads `color_config` (5.5.2) up to `color_range`; `None` if there is no colour description.
fn read_color_config(bits: &mut BitReader<'_>, profile: u32) -> Option<CicpColor> {
    let high_depth = bits.read_bit();
    if profile == 2 && high_depth {
        bits.skip(1); // twelve_bit
    }
    if profile != 1 {
        bits.skip(1); // mono_chrome
    }
    if !bits.read_bit() {
        return None;
    }
    let [primaries, transfer, matrix] = [0; 3].map(|_: u8| bits.read_bits_u8(8));
    let srgb = (primaries, transfer, matrix) == (1, 13, 0);
    Some(CicpColor {
        primaries,
        transfer,
        matrix,
        full_range: srgb || bits.read_bit(),
    })
}
