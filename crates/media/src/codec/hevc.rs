//! HEVC: `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 8.3.3) and its codec string
//! (annex E.3).

use super::avc::parse_length_field_bytes;
use super::visual_sample_entry::VisualSampleEntry;
use super::{Codec, NalFormat, build_video_codec, hevc_sps};
use crate::bytes::ByteReader;
use crate::error::{Error, Result, format_fourcc};
use std::fmt::Write;

/// NAL unit types of VPS, SPS and PPS, in the order in which a decoder needs these parameter sets.
const PARAMETER_SETS: [u8; 3] = [32, 33, 34];

/// Parses an `hvc1`, `hev1`, `dvh1` or `dvhe` entry.
pub fn parse_hevc_entry(entry: &VisualSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"hvcC", entry.code)?;
    let code = match &entry.code {
        b"dvh1" => *b"hvc1",
        b"dvhe" => *b"hev1",
        code => *code,
    };
    let inside = |error: Error| error.with_enclosing_box(*b"hvcC");
    let mut reader = ByteReader::new(body);
    let string = format_hevc_codec_string(&mut reader, code).map_err(inside)?;
    let nal = read_parameter_sets(&mut reader).map_err(inside)?;
    let is_sps = |set: &&Vec<u8>| set.first().is_some_and(|head| head >> 1 & 63 == 33);
    let sps = nal.parameter_sets.iter().find(is_sps);
    let sps = sps.and_then(|set| hevc_sps::parse_sps(set));
    Ok(build_video_codec(entry, string, sps, Some(nal)))
}

/// Reads profile, tier and level, and formats the codec string according to annex E.3.
fn format_hevc_codec_string(reader: &mut ByteReader<'_>, code: [u8; 4]) -> Result<String> {
    if reader.u8() != 1 {
        let message = "the version of the HEVC configuration is not 1";
        return Err(Error::malformed(message));
    }
    let profile = reader.u8();
    let compatibility = reader.u32().reverse_bits();
    let constraints: [u8; 6] = reader.read_array();
    let level = reader.u8();
    reader.check_no_short_read()?;
    let space = ["", "A", "B", "C"][usize::from(profile >> 6)];
    let tier = if profile & 0x20 == 0 { 'L' } else { 'H' };
    let idc = profile & 31;
    let mut string = format!(
        "{}.{space}{idc}.{compatibility:X}.{tier}{level}",
        format_fourcc(code)
    );
    let used_len = constraints
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    for byte in constraints.iter().take(used_len) {
        let _ = write!(string, ".{byte:X}");
    }
    Ok(string)
}

/// Reads the rest of the record, which contains the size of NAL unit length fields, and the
/// parameter sets.
fn read_parameter_sets(reader: &mut ByteReader<'_>) -> Result<NalFormat> {
    reader.skip(8); // spatial segmentation, parallelism, chroma, depths, average frame rate
    let length_bytes = parse_length_field_bytes(reader.u8())?;
    let mut sets: Vec<(u8, Vec<u8>)> = Vec::new();
    for _ in 0..reader.u8() {
        let kind = reader.u8() & 63;
        for _ in 0..reader.u16() {
            let size = reader.u16();
            let set = reader.take(usize::from(size));
            reader.check_no_short_read()?;
            if PARAMETER_SETS.contains(&kind) {
                sets.push((kind, set.to_vec()));
            }
        }
    }
    reader.check_no_short_read()?;
    sets.sort_by_key(|(kind, _)| *kind);
    Ok(NalFormat {
        is_hevc: true,
        length_field_bytes: length_bytes,
        parameter_sets: sets.into_iter().map(|(_, set)| set).collect(),
    })
}
