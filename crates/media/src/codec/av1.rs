//! AV1 in av01 and dav1 entries: `AV1CodecConfigurationBox` ("AV1 Codec ISO Media File Format
//! Binding", 2.3 and 5).

use super::bit_reader::BitReader;
use super::color_and_aspect::SequenceParameters;
use super::visual_sample_entry::VisualSampleEntry;
use super::{CicpColor, Codec, av1_sequence, build_video_codec};
use crate::error::{Error, Result};

/// The fields of the `av1C` box that the codec string contains.
#[derive(Debug, Clone, Copy)]
struct Av1Config {
    profile: u32,
    level: u32,
    is_high_tier: bool,
    bit_depth: u32,
    is_monochrome: bool,
    /// Whether the chroma resolution is halved horizontally, and whether it is halved vertically.
    subsampling: (bool, bool),
    chroma_position: u32,
}

/// Parses an `av01` or `dav1` entry.
pub fn parse_av1_entry(entry: &VisualSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"av1C", entry.code)?;
    let mut bits = BitReader::new(body);
    let config = read_config(&mut bits).ok_or_else(|| {
        Error::malformed("the av1C box is truncated or not of version 1")
            .with_enclosing_box(*b"av1C")
    })?;
    let color = av1_sequence::read_color(body.get(4..).unwrap_or_default());
    let facts = SequenceParameters {
        width: entry.width,
        height: entry.height,
        sar: None,
        color,
    };
    let mut codec = build_video_codec(entry, String::new(), Some(facts), None);
    if codec.codec_string.is_empty() {
        codec.codec_string =
            format_codec_string(&config, codec.video().and_then(|video| video.color));
    }
    Ok(codec)
}

fn read_config(bits: &mut BitReader<'_>) -> Option<Av1Config> {
    let head = bits.read_bits(8);
    let (profile, level, high_tier) = (bits.read_bits(3), bits.read_bits(5), bits.read_bit());
    let depth = match (bits.read_bit(), bits.read_bit()) {
        (false, _) => 8,
        (true, false) => 10,
        (true, true) => 12,
    };
    let config = Av1Config {
        profile,
        level,
        is_high_tier: high_tier,
        bit_depth: depth,
        is_monochrome: bits.read_bit(),
        subsampling: (bits.read_bit(), bits.read_bit()),
        chroma_position: bits.read_bits(2),
    };
    bits.align_to_byte();
    bits.skip(8); // initial_presentation_delay
    (head == 0x81 && !bits.is_past_end()).then_some(config)
}

/// Formats the codec string (section 5 of the binding). The optional fields are all present or all
/// absent. Absent fields mean 4:2:0 and BT.709. Unspecified colour (2, 2, 2) counts as BT.709,
/// because players also assume BT.709.
fn format_codec_string(config: &Av1Config, color: Option<CicpColor>) -> String {
    let tier = if config.is_high_tier { 'H' } else { 'M' };
    let Av1Config {
        profile,
        level,
        bit_depth: depth,
        ..
    } = config;
    let string = format!("av01.{profile}.{level:02}{tier}.{depth:02}");
    let color = color.filter(|color| {
        (color.primaries, color.transfer, color.matrix) != (2, 2, 2) || color.full_range
    });
    let bt709 = CicpColor {
        primaries: 1,
        transfer: 1,
        matrix: 1,
        full_range: false,
    };
    let color = color.unwrap_or(bt709);
    if color == bt709 && !config.is_monochrome && config.subsampling == (true, true) {
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
        u8::from(config.is_monochrome),
        u8::from(across),
        u8::from(down),
        color.primaries,
        color.transfer,
        color.matrix,
        u8::from(color.full_range),
    )
}
