//! AVC: `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3) and sequence parameter sets
//! (ISO/IEC 14496-10, 7.3.2.1).

use super::bits::{Bits, unescape};
use super::color::Sps;
use super::visual_entry::VisualEntry;
use super::{Codec, Nal, visual};
use crate::bytes::Reader;
use crate::error::{Error, Result, fourcc};

/// `profile_idc`s whose parameter sets say how chroma is sampled.
const WITH_CHROMA: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// An avc1, avc3, dva1 or dvav entry.
pub fn parse(entry: &VisualEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"avcC", entry.code)?;
    let (profile, nal) = read_config(body).map_err(|error| error.inside(*b"avcC"))?;
    let hex: String = profile.iter().map(|byte| format!("{byte:02X}")).collect();
    let code = match &entry.code {
        b"dva1" => *b"avc1",
        b"dvav" => *b"avc3",
        code => *code,
    };
    let sps = nal.parameter_sets.iter().find(|set| is_sps(set));
    let sps = sps.and_then(|set| read_sps(set));
    let string = format!("{}.{hex}", fourcc(code));
    Ok(visual(entry, string, sps, Some(nal)))
}

fn is_sps(set: &[u8]) -> bool {
    set.first().is_some_and(|head| head & 31 == 7)
}

/// Profile, compatibility and level bytes, and what Annex B needs.
fn read_config(body: &[u8]) -> Result<([u8; 3], Nal)> {
    let mut reader = Reader::new(body);
    if reader.u8() != 1 {
        return Err(Error::malformed(
            "the version of the AVC configuration is not 1",
        ));
    }
    let profile = reader.array();
    let length_bytes = length_bytes(reader.u8())?;
    let mut parameter_sets = Vec::new();
    for mask in [31, 255] {
        let count = reader.u8() & mask;
        for _ in 0..count {
            let size = reader.u16();
            parameter_sets.push(reader.take(usize::from(size)).to_vec());
            reader.done()?;
        }
    }
    reader.done()?;
    let nal = Nal {
        hevc: false,
        length_bytes,
        parameter_sets,
    };
    Ok((profile, nal))
}

/// `lengthSizeMinusOne`, in the low two bits, as bytes of a NAL unit's length.
pub fn length_bytes(field: u8) -> Result<u8> {
    match field & 3 {
        2 => Err(Error::malformed(
            "NAL unit lengths of 3 bytes are not allowed",
        )),
        less_one => Ok(less_one + 1),
    }
}

/// Reads an SPS with its NAL header; none if it makes no sense.
pub fn read_sps(nal: &[u8]) -> Option<Sps> {
    let rbsp = unescape(nal.get(1..)?);
    let mut bits = Bits::new(&rbsp);
    let profile = bits.u(8);
    bits.skip(16);
    bits.ue(); // seq_parameter_set_id
    let mut chroma = 1;
    if WITH_CHROMA.contains(&profile) {
        chroma = read_chroma(&mut bits);
    }
    bits.ue(); // log2_max_frame_num_minus4
    skip_order_count(&mut bits);
    bits.ue(); // max_num_ref_frames
    bits.skip(1);
    let width = u64::from(bits.ue()) * 16 + 16;
    let units = u64::from(bits.ue()) + 1;
    let frame_only = bits.bit();
    let height = units * if frame_only { 16 } else { 32 };
    bits.skip(usize::from(!frame_only) + 1); // mb_adaptive_frame_field, direct_8x8_inference
    let (crop_x, crop_y) = read_crop(&mut bits, chroma, frame_only);
    let mut sps = Sps {
        width: dimension(width, crop_x)?,
        height: dimension(height, crop_y)?,
        sar: None,
        color: None,
    };
    if bits.bit() {
        sps.read_vui(&mut bits);
    }
    (!bits.short()).then_some(sps)
}

/// What is left of `size` after cropping, if that is a size of pictures.
pub fn dimension(size: u64, crop: u64) -> Option<u32> {
    let left = size.checked_sub(crop)?;
    (1..=65_536).contains(&left).then_some(left as u32)
}

/// chroma_format_idc with depths and scaling lists; a format of 0 for separate planes.
fn read_chroma(bits: &mut Bits<'_>) -> u32 {
    let mut chroma = bits.ue();
    if chroma == 3 && bits.bit() {
        chroma = 0;
    }
    bits.ue(); // bit_depth_luma_minus8
    bits.ue(); // bit_depth_chroma_minus8
    bits.skip(1); // qpprime_y_zero_transform_bypass_flag
    if bits.bit() {
        for list in 0..if chroma == 3 { 12 } else { 8 } {
            if bits.bit() {
                skip_scaling_list(bits, if list < 6 { 16 } else { 64 });
            }
        }
    }
    chroma
}

/// `scaling_list` (7.3.2.1.1.1).
fn skip_scaling_list(bits: &mut Bits<'_>, size: u32) {
    let (mut last, mut next) = (8i64, 8i64);
    for _ in 0..size {
        if next != 0 {
            next = (last + i64::from(bits.se())).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
}

fn skip_order_count(bits: &mut Bits<'_>) {
    match bits.ue() {
        0 => {
            bits.ue(); // log2_max_pic_order_cnt_lsb_minus4
        }
        1 => {
            bits.skip(1);
            bits.se();
            bits.se();
            for _ in 0..bits.ue().min(255) {
                bits.se();
            }
        }
        _ => {}
    }
}

/// Pixels cropped from the width and the height.
fn read_crop(bits: &mut Bits<'_>, chroma: u32, frame_only: bool) -> (u64, u64) {
    if !bits.bit() {
        return (0, 0);
    }
    let [left, right, top, bottom] = [0; 4].map(|_: u8| u64::from(bits.ue()));
    let unit_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let rows = if chroma == 1 { 2 } else { 1 };
    let unit_y = if frame_only { rows } else { rows * 2 };
    ((left + right) * unit_x, (top + bottom) * unit_y)
}
