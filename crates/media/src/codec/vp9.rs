//! VP9 in vp09 entries: `VPCodecConfigurationBox` ("VP Codec ISO Media File Format Binding").

use super::bit_reader::BitReader;
use super::color_and_aspect::SequenceParameters;
use super::visual_sample_entry::VisualSampleEntry;
use super::{CicpColor, Codec, build_video_codec};
use crate::error::{Error, Result};

/// Parses a `vp09` entry.
pub fn parse_vp9_entry(entry: &VisualSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"vpcC", entry.code)?;
    let mut bits = BitReader::new(body);
    let version = bits.read_bits(8);
    bits.skip(24);
    let (profile, level, depth, chroma) = (
        bits.read_bits(8),
        bits.read_bits(8),
        bits.read_bits(4),
        bits.read_bits(3),
    );
    let full_range = bits.read_bit();
    let [primaries, transfer, matrix] = [0; 3].map(|_: u8| bits.read_bits_u8(8));
    if bits.is_past_end() || version != 1 {
        let message = "the vpcC box is truncated or not of version 1";
        return Err(Error::malformed(message));
    }
    let color = CicpColor {
        primaries,
        transfer,
        matrix,
        full_range,
    };
    let mut string = format!("vp09.{profile:02}.{level:02}.{depth:02}");
    // The optional fields of the codec string are all present or all absent. Absent fields mean
    // 4:2:0 and BT.709. Unspecified colour (2, 2, 2) counts as BT.709, because players also assume
    // BT.709.
    let plain = matches!((primaries, transfer, matrix), (1, 1, 1) | (2, 2, 2));
    if !plain || full_range || chroma > 1 {
        string += &format!(".{chroma:02}.{primaries:02}.{transfer:02}.{matrix:02}");
        string += if full_range { ".01" } else { ".00" };
    }
    let facts = SequenceParameters {
        width: entry.width,
        height: entry.height,
        sar: None,
        color: Some(color),
    };
    Ok(build_video_codec(entry, string, Some(facts), None))
}
