//! HEVC: `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 8.3.3) and its codec string
//! (annex E.3).

use super::avc::length_bytes;
use super::visual_entry::VisualEntry;
use super::{Codec, Nal, hevc_sps, visual};
use crate::bytes::Reader;
use crate::error::{Error, Result, fourcc};
use std::fmt::Write;

/// NAL unit types of the parameter sets, in the order a decoder wants them: VPS, SPS, PPS.
const PARAMETER_SETS: [u8; 3] = [32, 33, 34];

/// An hvc1, hev1, dvh1 or dvhe entry.
pub fn parse(entry: &VisualEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"hvcC", entry.code)?;
    let code = match &entry.code {
        b"dvh1" => *b"hvc1",
        b"dvhe" => *b"hev1",
        code => *code,
    };
    let inside = |error: Error| error.inside(*b"hvcC");
    let mut reader = Reader::new(body);
    let string = read_string(&mut reader, code).map_err(inside)?;
    let nal = read_sets(&mut reader).map_err(inside)?;
    let is_sps = |set: &&Vec<u8>| set.first().is_some_and(|head| head >> 1 & 63 == 33);
    let sps = nal.parameter_sets.iter().find(is_sps);
    let sps = sps.and_then(|set| hevc_sps::read(set));
    Ok(visual(entry, string, sps, Some(nal)))
}

/// Reads the profile, tier and level, and writes them as annex E.3 says.
fn read_string(reader: &mut Reader<'_>, code: [u8; 4]) -> Result<String> {
    if reader.u8() != 1 {
        let what = "the version of the HEVC configuration is not 1";
        return Err(Error::malformed(what));
    }
    let profile = reader.u8();
    let compatibility = reader.u32().reverse_bits();
    let constraints: [u8; 6] = reader.array();
    let level = reader.u8();
    reader.done()?;
    let space = ["", "A", "B", "C"][usize::from(profile >> 6)];
    let tier = if profile & 0x20 == 0 { 'L' } else { 'H' };
    let idc = profile & 31;
    let mut string = format!(
        "{}.{space}{idc}.{compatibility:X}.{tier}{level}",
        fourcc(code)
    );
    let kept = constraints
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    for byte in constraints.iter().take(kept) {
        let _ = write!(string, ".{byte:X}");
    }
    Ok(string)
}

/// Reads the rest of the record: what Annex B needs.
fn read_sets(reader: &mut Reader<'_>) -> Result<Nal> {
    reader.skip(8); // spatial segmentation, parallelism, chroma, depths, average frame rate
    let length_bytes = length_bytes(reader.u8())?;
    let mut sets: Vec<(u8, Vec<u8>)> = Vec::new();
    for _ in 0..reader.u8() {
        let kind = reader.u8() & 63;
        for _ in 0..reader.u16() {
            let size = reader.u16();
            let set = reader.take(usize::from(size));
            reader.done()?;
            if PARAMETER_SETS.contains(&kind) {
                sets.push((kind, set.to_vec()));
            }
        }
    }
    reader.done()?;
    sets.sort_by_key(|(kind, _)| *kind);
    Ok(Nal {
        hevc: true,
        length_bytes,
        parameter_sets: sets.into_iter().map(|(_, set)| set).collect(),
    })
}
