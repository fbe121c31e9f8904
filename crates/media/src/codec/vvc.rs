//! VVC: `VvcDecoderConfigurationRecord` (ISO/IEC 14496-15, 11.2.4) and its codec string (annex
//! E.6). Colour is read only from the `colr` box.

use super::bit_reader::BitReader;
use super::visual_sample_entry::VisualSampleEntry;
use super::{Codec, build_video_codec};
use crate::error::{Error, Result, format_fourcc};

/// Parses a `vvc1` or `vvi1` entry.
pub fn parse_vvc_entry(entry: &VisualSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"vvcC", entry.code)?;
    let string = format_vvc_codec_string(body, entry.code)
        .map_err(|error| error.with_enclosing_box(*b"vvcC"))?;
    Ok(build_video_codec(entry, string, None, None))
}

fn format_vvc_codec_string(body: &[u8], code: [u8; 4]) -> Result<String> {
    let mut bits = BitReader::new(body);
    bits.skip(32 + 5 + 2); // version and flags, reserved, LengthSizeMinusOne
    if !bits.read_bit() {
        let message = "the vvcC box has no profile, tier and level";
        return Err(Error::malformed(message));
    }
    bits.skip(9 + 3 + 2 + 2 + 3 + 5); // output layer set, sublayers, frame rate, chroma, depth
    bits.skip(2);
    let constraint_bytes = bits.read_bits(6);
    let profile = bits.read_bits(7);
    let tier = if bits.read_bit() { 'H' } else { 'L' };
    let level = bits.read_bits(8);
    // ptl_frame_only_constraint_flag, ptl_multilayer_enabled_flag and general_constraint_info
    let constraints: Vec<u8> = (0..constraint_bytes)
        .map(|_| bits.read_bits_u8(8))
        .collect();
    if bits.is_past_end() {
        return Err(Error::malformed("the vvcC box is truncated"));
    }
    let mut string = format!("{}.{profile}.{tier}{level}", format_fourcc(code));
    let used_len = constraints
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    if let Some(used_bytes) = constraints.get(..used_len)
        && !used_bytes.is_empty()
    {
        string += ".C";
        string += &encode_base32(used_bytes);
    }
    Ok(string)
}

/// Encodes bytes as base32 without padding (RFC 4648, 6).
fn encode_base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bits = BitReader::new(bytes);
    let letters = (bytes.len() * 8).div_ceil(5);
    (0..letters)
        .map(|_| char::from(ALPHABET[bits.read_bits(5) as usize & 31]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_encodes_the_vectors_of_rfc_4648() {
        for (bytes, text) in [("f", "MY"), ("fo", "MZXQ"), ("foobar", "MZXW6YTBOI")] {
            assert_eq!(encode_base32(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_codec_string_has_profile_tier_level_and_constraints() {
        let mut body = vec![0, 0, 0, 0, 0xff, 0, 0x10, 0x5f, 1, 1 << 1, 51, 0x80];
        assert_eq!(
            format_vvc_codec_string(&body, *b"vvc1").unwrap(),
            "vvc1.1.L51.CQA"
        );
        body[11] = 0;
        body[9] |= 1;
        assert_eq!(
            format_vvc_codec_string(&body, *b"vvi1").unwrap(),
            "vvi1.1.H51"
        );
        assert!(format_vvc_codec_string(&body[..11], *b"vvc1").is_err());
        body[4] = 0xfe;
        assert!(format_vvc_codec_string(&body, *b"vvc1").is_err());
    }
}
