//! AV1 in av01 and dav1 entries: `AV1CodecConfigurationBox` ("AV1 Codec ISO Media File Format
//! Binding", 2.3 and 5).

use super::bits::Bits;
use super::color::Sps;
use super::visual_entry::VisualEntry;
use super::{Cicp, Codec, av1_sequence, visual};
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
    let color = av1_sequence::read_color(body.get(4..).unwrap_or_default());
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
