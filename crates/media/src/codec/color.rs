//! Colour and pixel shape boxes of visual sample entries (ISO/IEC 14496-12, 12.1.4 and 12.1.5).

use super::Cicp;
use super::bits::Bits;
use super::entry::Children;
use crate::bytes::Reader;

/// Unspecified, in every code point of ISO/IEC 23091-2.
const UNSPECIFIED: u8 = 2;

impl Cicp {
    /// Whether it says anything about how light is coded.
    fn is_specified(&self) -> bool {
        self.transfer != UNSPECIFIED || self.primaries != UNSPECIFIED
    }
}

/// The first `colr` box with code points: `nclx`, or QuickTime's `nclc` (video range).
fn colr(children: &Children<'_>) -> Option<Cicp> {
    children
        .0
        .iter()
        .filter(|child| child.name == *b"colr")
        .find_map(|child| {
            let mut reader = Reader::new(child.body);
            let kind: [u8; 4] = reader.array();
            let [primaries, transfer, matrix] = [0; 3].map(|_: u8| reader.u16().min(255) as u8);
            let full_range = kind == *b"nclx" && reader.u8() >> 7 == 1;
            let known = matches!(&kind, b"nclx" | b"nclc") && reader.done().is_ok();
            known.then_some(Cicp {
                primaries,
                transfer,
                matrix,
                full_range,
            })
        })
}

/// Colour as the sample entry says, or else as the decoder configuration does; none where both
/// leave it unspecified.
pub fn color(children: &Children<'_>, config: Option<Cicp>) -> Option<Cicp> {
    let specified = |color: &Cicp| color.is_specified();
    colr(children)
        .filter(specified)
        .or(config.filter(specified))
}

/// Pixel aspect ratio as the `pasp` box says, or else as the decoder configuration does.
pub fn sar(children: &Children<'_>, config: Option<(u32, u32)>) -> (u32, u32) {
    let pasp = children.find(b"pasp").map(|body| {
        let mut reader = Reader::new(body);
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

/// `sample_aspect_ratio` by `aspect_ratio_idc` (ISO/IEC 23091-2, 8.6); none if not listed.
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

/// What a sequence parameter set says of the pictures, as far as manifests tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sps {
    /// Pixels, cropped.
    pub width: u32,
    /// Pixels, cropped.
    pub height: u32,
    /// Pixel aspect ratio, if said.
    pub sar: Option<(u32, u32)>,
    /// Colour, if said.
    pub color: Option<Cicp>,
}

impl Sps {
    /// Reads the beginning of `vui_parameters`, which AVC (E.1.1) and HEVC (E.2.1) share.
    pub fn read_vui(&mut self, bits: &mut Bits<'_>) {
        if bits.bit() {
            let idc = bits.u8(8);
            self.sar = match idc {
                255 => Some((bits.u(16), bits.u(16))),
                idc => sar_of_idc(idc),
            };
        }
        if bits.bit() {
            bits.skip(1); // overscan_appropriate_flag
        }
        if bits.bit() {
            bits.skip(3); // video_format
            let full_range = bits.bit();
            let coded = bits.bit();
            let [primaries, transfer, matrix] =
                [0; 3].map(|_: u8| if coded { bits.u8(8) } else { UNSPECIFIED });
            self.color = Some(Cicp {
                primaries,
                transfer,
                matrix,
                full_range,
            });
        }
    }
}
