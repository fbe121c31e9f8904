//! AV1 in av01 and dav1 entries: `AV1CodecConfigurationBox` ("AV1 Codec ISO Media File Format
//! Binding", 2.3 and 5) and the sequence header in it (AV1 specification, 5.5).

use super::bits::Bits;
use super::color::Sps;
use super::entry::VisualEntry;
use super::{Cicp, Codec, visual};
use crate::error::{Error, Result};

/// Fields of av1C that the codec string has.
#[derive(Debug, Clone, Copy)]
struct Config {
    profile: u32,
    level: u32,
    high_tier: bool,
    depth: u32,
    monochrome: bool,
    /// Whether chroma is halved across and down.
    subsampling: (bool, bool),
    chroma_position: u32,
}

/// An av01 or dav1 entry.
pub fn parse(entry: &VisualEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"av1C", entry.code)?;
    let mut bits = Bits::new(body);
    let config = read_config(&mut bits).ok_or_else(|| {
        Error::malformed("the av1C box is cut off, or not of version 1").inside(*b"av1C")
    })?;
    let header = sequence_header(body.get(4..).unwrap_or_default());
    let color = header.and_then(read_color);
    let facts = Sps {
        width: entry.width,
        height: entry.height,
        sar: None,
        color,
    };
    let mut codec = visual(entry, String::new(), Some(facts), None);
    if codec.string.is_empty() {
        codec.string = string(&config, codec.video().and_then(|video| video.color));
    }
    Ok(codec)
}

fn read_config(bits: &mut Bits<'_>) -> Option<Config> {
    let head = bits.u(8);
    let (profile, level, high_tier) = (bits.u(3), bits.u(5), bits.bit());
    let depth = match (bits.bit(), bits.bit()) {
        (false, _) => 8,
        (true, false) => 10,
        (true, true) => 12,
    };
    let config = Config {
        profile,
        level,
        high_tier,
        depth,
        monochrome: bits.bit(),
        subsampling: (bits.bit(), bits.bit()),
        chroma_position: bits.u(2),
    };
    bits.align();
    bits.skip(8); // initial_presentation_delay
    (head == 0x81 && !bits.short()).then_some(config)
}

/// The codec string (binding, 5): the optional fields are all there or none is; none means
/// 4:2:0 and BT.709. Unspecified colour (2, 2, 2) is taken for that, as players do.
fn string(config: &Config, color: Option<Cicp>) -> String {
    let tier = if config.high_tier { 'H' } else { 'M' };
    let Config {
        profile,
        level,
        depth,
        ..
    } = config;
    let string = format!("av01.{profile}.{level:02}{tier}.{depth:02}");
    let color = color.filter(|color| {
        (color.primaries, color.transfer, color.matrix) != (2, 2, 2) || color.full_range
    });
    let bt709 = Cicp {
        primaries: 1,
        transfer: 1,
        matrix: 1,
        full_range: false,
    };
    let color = color.unwrap_or(bt709);
    if color == bt709 && !config.monochrome && config.subsampling == (true, true) {
        return string;
    }
    let (across, down) = config.subsampling;
    let position = if across && down {
        config.chroma_position
    } else {
        0
    };
    format!(
        "{string}.{}.{}{}{position}.{:02}.{:02}.{:02}.{}",
        u8::from(config.monochrome),
        u8::from(across),
        u8::from(down),
        color.primaries,
        color.transfer,
        color.matrix,
        u8::from(color.full_range),
    )
}

/// The payload of the first sequence header among `configOBUs`.
fn sequence_header(mut obus: &[u8]) -> Option<&[u8]> {
    while let [head, rest @ ..] = obus {
        let extension = usize::from(head >> 2 & 1);
        let rest = rest.get(extension..)?;
        let (size, rest) = if head & 2 == 0 {
            (rest.len(), rest)
        } else {
            leb128(rest)?
        };
        let (payload, after) = rest.split_at_checked(size)?;
        if head >> 3 & 15 == 1 {
            return Some(payload);
        }
        obus = after;
    }
    None
}

/// `leb128()` (4.10.5) and what follows it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().enumerate().take(8) {
        value |= u64::from(byte & 0x7f) << (n * 7);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[n + 1..]));
        }
    }
    None
}

/// Colour in `sequence_header_obu`; none if it is cut off or does not say.
fn read_color(header: &[u8]) -> Option<Cicp> {
    let mut bits = Bits::new(header);
    let profile = bits.u(3);
    bits.skip(1); // still_picture
    let reduced = bits.bit();
    if reduced {
        bits.skip(5); // seq_level_idx
    } else {
        skip_operating_points(&mut bits);
    }
    let (wide, high) = (bits.u(4) as usize, bits.u(4) as usize);
    bits.skip(wide + 1 + high + 1);
    if !reduced && bits.bit() {
        bits.skip(4 + 3); // frame id lengths
    }
    bits.skip(3); // superblock size, filter intra, intra edge filter
    if !reduced {
        skip_tools(&mut bits);
    }
    bits.skip(3); // superres, cdef, restoration
    let color = color_config(&mut bits, profile);
    color.filter(|_| !bits.short())
}

/// From timing_info_present_flag to the last operating point.
fn skip_operating_points(bits: &mut Bits<'_>) {
    let mut delay_length = None;
    if bits.bit() {
        bits.skip(64); // num_units_in_display_tick, time_scale
        if bits.bit() {
            bits.ue(); // num_ticks_per_picture_minus_1: uvlc is Exp-Golomb
        }
        if bits.bit() {
            delay_length = Some(bits.u(5) as usize + 1);
            bits.skip(32 + 5 + 5);
        }
    }
    let display_delay = bits.bit();
    for _ in 0..=bits.u(5) {
        bits.skip(12);
        if bits.u(5) > 7 {
            bits.skip(1); // seq_tier
        }
        if let Some(length) = delay_length
            && bits.bit()
        {
            bits.skip(length * 2 + 1);
        }
        if display_delay && bits.bit() {
            bits.skip(4);
        }
    }
}

/// From enable_interintra_compound to order_hint_bits.
fn skip_tools(bits: &mut Bits<'_>) {
    bits.skip(4);
    let order_hint = bits.bit();
    if order_hint {
        bits.skip(2);
    }
    let screen_content = bits.bit() || bits.bit();
    if screen_content && !bits.bit() {
        bits.skip(1); // seq_force_integer_mv
    }
    if order_hint {
        bits.skip(3);
    }
}

/// `color_config` (5.5.2) up to color_range; none if it has no colour description.
fn color_config(bits: &mut Bits<'_>, profile: u32) -> Option<Cicp> {
    let high_depth = bits.bit();
    if profile == 2 && high_depth {
        bits.skip(1); // twelve_bit
    }
    if profile != 1 {
        bits.skip(1); // mono_chrome
    }
    if !bits.bit() {
        return None;
    }
    let [primaries, transfer, matrix] = [0; 3].map(|_: u8| bits.u8(8));
    let srgb = (primaries, transfer, matrix) == (1, 13, 0);
    Some(Cicp {
        primaries,
        transfer,
        matrix,
        full_range: srgb || bits.bit(),
    })
}
