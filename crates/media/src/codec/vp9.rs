//! VP9 in vp09 entries: `VPCodecConfigurationBox` ("VP Codec ISO Media File Format Binding").

use super::bits::Bits;
use super::color::Sps;
use super::visual_entry::VisualEntry;
use super::{Cicp, Codec, visual};
use crate::error::{Error, Result};

/// A vp09 entry.
pub fn parse(entry: &VisualEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"vpcC", entry.code)?;
    let mut bits = Bits::new(body);
    let version = bits.u(8);
    bits.skip(24);
    let (profile, level, depth, chroma) = (bits.u(8), bits.u(8), bits.u(4), bits.u(3));
    let full_range = bits.bit();
    let [primaries, transfer, matrix] = [0; 3].map(|_: u8| bits.u8(8));
    if bits.short() || version != 1 {
        let what = "the vpcC box is cut off, or not of version 1";
        return Err(Error::malformed(what));
    }
    let color = Cicp {
        primaries,
        transfer,
        matrix,
        full_range,
    };
    let mut string = format!("vp09.{profile:02}.{level:02}.{depth:02}");
    // The optional fields are all there or none is; none means 4:2:0 and BT.709. Unspecified
    // colour (2, 2, 2) is taken for that, as players do.
    let plain = matches!((primaries, transfer, matrix), (1, 1, 1) | (2, 2, 2));
    if !plain || full_range || chroma > 1 {
        string += &format!(".{chroma:02}.{primaries:02}.{transfer:02}.{matrix:02}");
        string += if full_range { ".01" } else { ".00" };
    }
    let facts = Sps {
        width: entry.width,
        height: entry.height,
        sar: None,
        color: Some(color),
    };
    Ok(visual(entry, string, Some(facts), None))
}
