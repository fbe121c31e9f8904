//! AVC: `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3) and sequence parameter sets
//! (ISO/IEC 14496-10, 7.3.2.1).

use super::bit_reader::{BitReader, remove_emulation_prevention};
use super::color_and_aspect::SequenceParameters;
use super::visual_sample_entry::VisualSampleEntry;
use super::{Codec, NalFormat, build_video_codec};
use crate::bytes::ByteReader;
use crate::error::{Error, Result, format_fourcc};

/// Values of `profile_idc` for which the sequence parameter set contains the chroma format.
pub const WITH_CHROMA: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Parses an `avc1`, `avc3`, `dva1` or `dvav` entry.
pub fn parse_avc_entry(entry: &VisualSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"avcC", entry.code)?;
    let (profile, nal) = read_config(body).map_err(|error| error.with_enclosing_box(*b"avcC"))?;
    let hex: String = profile.iter().map(|byte| format!("{byte:02X}")).collect();
    let code = match &entry.code {
        b"dva1" => *b"avc1",
        b"dvav" => *b"avc3",
        code => *code,
    };
    let sps = nal.parameter_sets.iter().find(|set| is_sps(set));
    let sps = sps.and_then(|set| parse_sps(set));
    let string = format!("{}.{hex}", format_fourcc(code));
    Ok(build_video_codec(entry, string, sps, Some(nal)))
}

fn is_sps(set: &[u8]) -> bool {
    set.first().is_some_and(|head| head & 31 == 7)
}

/// Reads the profile, compatibility and level bytes, and the NAL format.
fn read_config(body: &[u8]) -> Result<([u8; 3], NalFormat)> {
    let mut reader = ByteReader::new(body);
    if reader.u8() != 1 {
        return Err(Error::malformed(
            "the version of the AVC configuration is not 1",
        ));
    }
    let profile = reader.read_array();
    let length_bytes = parse_length_field_bytes(reader.u8())?;
    let mut parameter_sets = Vec::new();
    for mask in [31, 255] {
        let count = reader.u8() & mask;
        for _ in 0..count {
            let size = reader.u16();
            parameter_sets.push(reader.take(usize::from(size)).to_vec());
            reader.check_no_short_read()?;
        }
    }
    reader.check_no_short_read()?;
    let nal = NalFormat {
        is_hevc: false,
        length_field_bytes: length_bytes,
        parameter_sets,
    };
    Ok((profile, nal))
}

/// Returns the size of the length fields before NAL units, in bytes. The low two bits of `field`
/// contain `lengthSizeMinusOne`.
pub fn parse_length_field_bytes(field: u8) -> Result<u8> {
    match field & 3 {
        2 => Err(Error::malformed(
            "NAL unit lengths of 3 bytes are not allowed",
        )),
        less_one => Ok(less_one + 1),
    }
}

/// Parses a NAL unit that contains a sequence parameter set. Returns `None` if the set is invalid.
pub fn parse_sps(nal: &[u8]) -> Option<SequenceParameters> {
    let rbsp = remove_emulation_prevention(nal.get(1..)?);
    let mut bits = BitReader::new(&rbsp);
    let profile = bits.read_bits(8);
    bits.skip(16);
    bits.read_ue(); // seq_parameter_set_id
    let mut chroma = 1;
    if WITH_CHROMA.contains(&profile) {
        chroma = read_chroma_format(&mut bits);
    }
    bits.read_ue(); // log2_max_frame_num_minus4
    skip_picture_order_count(&mut bits);
    bits.read_ue(); // max_num_ref_frames
    bits.skip(1);
    let width = u64::from(bits.read_ue()) * 16 + 16;
    let units = u64::from(bits.read_ue()) + 1;
    let frame_only = bits.read_bit();
    let height = units * if frame_only { 16 } else { 32 };
    bits.skip(usize::from(!frame_only) + 1); // mb_adaptive_frame_field, direct_8x8_inference
    let (crop_x, crop_y) = read_crop(&mut bits, chroma, frame_only);
    let mut sps = SequenceParameters {
        width: crop_dimension(width, crop_x)?,
        height: crop_dimension(height, crop_y)?,
        sar: None,
        color: None,
    };
    if bits.read_bit() {
        sps.read_vui(&mut bits);
    }
    (!bits.is_past_end()).then_some(sps)
}

/// Subtracts `crop` from `size`; `None` if the result is not a valid picture dimension.
pub fn crop_dimension(size: u64, crop: u64) -> Option<u32> {
    let left = size.checked_sub(crop)?;
    (1..=65_536).contains(&left).then_some(left as u32)
}

/// Reads chroma_format_idc, and skips bit depths and scaling lists. Returns 0 if the colour planes
/// are coded separately.
fn read_chroma_format(bits: &mut BitReader<'_>) -> u32 {
    let mut chroma = bits.read_ue();
    if chroma == 3 && bits.read_bit() {
        chroma = 0;
    }
    bits.read_ue(); // bit_depth_luma_minus8
    bits.read_ue(); // bit_depth_chroma_minus8
    bits.skip(1); // qpprime_y_zero_transform_bypass_flag
    if bits.read_bit() {
        for list in 0..if chroma == 3 { 12 } else { 8 } {
            if bits.read_bit() {
                skip_scaling_list(bits, if list < 6 { 16 } else { 64 });
            }
        }
    }
    chroma
}

/// Skips `scaling_list` (7.3.2.1.1.1).
pub fn skip_scaling_list(bits: &mut BitReader<'_>, size: u32) {
    let (mut last, mut next) = (8i64, 8i64);
    for _ in 0..size {
        if next != 0 {
            next = (last + i64::from(bits.read_se())).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
}

fn skip_picture_order_count(bits: &mut BitReader<'_>) {
    match bits.read_ue() {
        0 => {
            bits.read_ue(); // log2_max_pic_order_cnt_lsb_minus4
        }
        1 => {
            bits.skip(1);
            bits.read_se();
            bits.read_se();
            for _ in 0..bits.read_ue().min(255) {
                bits.read_se();
            }
        }
        _ => {}
    }
}

/// Reads how many pixels are cropped from the width and from the height.
fn read_crop(bits: &mut BitReader<'_>, chroma: u32, frame_only: bool) -> (u64, u64) {
    if !bits.read_bit() {
        return (0, 0);
    }
    let [left, right, top, bottom] = [0; 4].map(|_: u8| u64::from(bits.read_ue()));
    let unit_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let rows = if chroma == 1 { 2 } else { 1 };
    let unit_y = if frame_only { rows } else { rows * 2 };
    ((left + right) * unit_x, (top + bottom) * unit_y)
}
