//! Boxes with the colour and pixel aspect ratio of visual sample entries (ISO/IEC 14496-12, 12.1.4
//! and 12.1.5).

use super::CicpColor;
use super::bit_reader::BitReader;
use super::child_boxes::ChildBoxes;
use crate::bytes::ByteReader;

/// Code point for "unspecified" (ISO/IEC 23091-2).
const UNSPECIFIED: u8 = 2;

impl CicpColor {
    /// Returns whether the primaries or the transfer characteristics are specified.
    fn is_specified(&self) -> bool {
        self.transfer != UNSPECIFIED || self.primaries != UNSPECIFIED
    }
}

/// Returns the colour of the first `colr` box with code points. The type of such a box is `nclx` or
/// QuickTime's `nclc`. The type `nclc` always means video range.
fn find_colr(children: &ChildBoxes<'_>) -> Option<CicpColor> {
    children
        .0
        .iter()
        .filter(|child| child.name == *b"colr")
        .find_map(|child| {
            let mut reader = ByteReader::new(child.body);
            let kind: [u8; 4] = reader.read_array();
            let [primaries, transfer, matrix] = [0; 3].map(|_: u8| reader.u16().min(255) as u8);
            let full_range = kind == *b"nclx" && reader.u8() >> 7 == 1;
            let known = matches!(&kind, b"nclx" | b"nclc") && reader.check_no_short_read().is_ok();
            known.then_some(CicpColor {
                primaries,
                transfer,
                matrix,
                full_range,
            })
        })
}

/// Returns the colour in the sample entry. If the entry does not specify a colour, returns the
/// colour in the decoder configuration, if any.
pub fn resolve_cicp_color(
    children: &ChildBoxes<'_>,
    config: Option<CicpColor>,
) -> Option<CicpColor> {
    let specified = |color: &CicpColor| color.is_specified();
    find_colr(children)
        .filter(specified)
        .or(config.filter(specified))
}

/// Returns the pixel aspect ratio in the `pasp` box. If there is no valid box, returns the ratio in
/// the decoder configuration, or (1, 1).
pub fn resolve_sar(children: &ChildBoxes<'_>, config: Option<(u32, u32)>) -> (u32, u32) {
    let pasp = children.find_body(b"pasp").map(|body| {
        let mut reader = ByteReader::new(body);
        (reader.u32(), reader.u32())
    });
    let valid = |sar: &(u32, u32)| sar.0 > 0 && sar.1 > 0;
    let (wide, high) = pasp
        .filter(valid)
        .or(config.filter(valid))
        .unwrap_or((1, 1));
    let divisor = crate::time::gcd(wide, high).max(1);
    (wide / divisor, high / divisor)
}

/// Returns the sample aspect ratio for `aspect_ratio_idc` (ISO/IEC 23091-2, 8.6). Returns `None` if
/// the value is unspecified or not in the table.
pub fn sar_of_idc(idc: u8) -> Option<(u32, u32)> {
    const TABLE: [(u32, u32); 17] = [
        (0, 0),
        (1, 1),
        (12, 11),
        (10, 11),
        (16, 11),
        (40, 33),
        (24, 11),
        (20, 11),
        (32, 11),
        (80, 33),
        (18, 11),
        (15, 11),
        (64, 33),
        (160, 99),
        (4, 3),
        (3, 2),
        (2, 1),
    ];
    TABLE.get(usize::from(idc)).copied().filter(|sar| sar.0 > 0)
}

/// Picture properties that manifests need, from a sequence parameter set or sequence header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceParameters {
    /// Cropped width in pixels.
    pub width: u32,
    /// Cropped height in pixels.
    pub height: u32,
    /// Pixel aspect ratio, if present.
    pub sar: Option<(u32, u32)>,
    /// Colour, if present.
    pub color: Option<CicpColor>,
}

impl SequenceParameters {
    /// Reads the start of `vui_parameters`, which is the same in AVC (E.1.1) and HEVC (E.2.1).
    pub fn read_vui(&mut self, bits: &mut BitReader<'_>) {
        if bits.read_bit() {
            let idc = bits.read_bits_u8(8);
            self.sar = match idc {
                255 => Some((bits.read_bits(16), bits.read_bits(16))),
                idc => sar_of_idc(idc),
            };
        }
        if bits.read_bit() {
            bits.skip(1); // overscan_appropriate_flag
        }
        if bits.read_bit() {
            bits.skip(3); // video_format
            let full_range = bits.read_bit();
            let coded = bits.read_bit();
            let [primaries, transfer, matrix] = [0; 3].map(|_: u8| {
                if coded {
                    bits.read_bits_u8(8)
                } else {
                    UNSPECIFIED
                }
            });
            self.color = Some(CicpColor {
                primaries,
                transfer,
                matrix,
                full_range,
            });
        }
    }
}
