//! E-AC-3 in `ec-3` entries: `EC3SpecificBox` (ETSI TS 102 366, F.6), with the extension for joint
//! object coding in Dolby Atmos (ETSI TS 103 420, 8.3).

use super::ac3::{build_fixed_string_codec, channel_map_of_acmod, resolve_sample_rate};
use super::audio_sample_entry::AudioSampleEntry;
use super::bit_reader::BitReader;
use super::{AudioCoding, AudioFormat, Codec, channel_configuration};
use crate::error::{Error, Result};

/// Parses an `ec-3` entry. The channel count includes only the first programme, which is the first
/// independent substream with its dependent substreams.
pub fn parse_eac3_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"dec3", entry.code)?;
    let mut bits = BitReader::new(body);
    bits.skip(13); // data_rate
    let substreams = bits.read_bits(3) + 1;
    let (fscod, map) = read_substream(&mut bits);
    for _ in 1..substreams {
        read_substream(&mut bits);
    }
    if bits.is_past_end() {
        return Err(Error::malformed("the dec3 box is truncated"));
    }
    let sample_rate = resolve_sample_rate(fscod, entry)?;
    let count = channel_configuration::count_dolby_channels(map);
    let hls_channels = match read_object_count(&mut bits) {
        Some(objects) => format!("{objects}/JOC"),
        None => count.to_string(),
    };
    let sample_entry = entry.write_iso_entry((*b"dec3", body), count, sample_rate);
    Ok(build_fixed_string_codec(
        entry.code,
        sample_entry,
        "ec-3",
        AudioFormat {
            coding: AudioCoding::Eac3,
            sample_rate,
            channel_count: count,
            hls_channels,
            dash_channel_configuration: channel_configuration::dolby_channel_configuration(map),
            audio_specific_config: Vec::new(),
        },
    ))
}

/// Reads `fscod` and the channel map of one independent substream with its dependent substreams.
fn read_substream(bits: &mut BitReader<'_>) -> (u32, u16) {
    let fscod = bits.read_bits(2);
    bits.skip(5 + 1 + 1 + 3); // bsid, reserved, asvc, bsmod
    let mut map = channel_map_of_acmod(bits.read_bits_u8(3), bits.read_bit());
    bits.skip(3);
    if bits.read_bits(4) == 0 {
        bits.skip(1);
    } else {
        map |= channel_map_of_locations(bits.read_bits(9));
    }
    (fscod, map)
}

/// Converts `chan_loc` (Table F.6.1) to a channel map.
///
/// The bits of `chan_loc`, from the lowest, are: Lc/Rc, Lrs/Rrs, Cs, Ts, Lsd/Rsd, Lw/Rw, Lvh/Rvh,
/// Cvh, LFE2. The channel map has these loudspeakers in the same order, from its sixth-highest bit
/// on. Between Cvh and LFE2, the channel map also has the top surrounds (Lts/Rts).
fn channel_map_of_locations(locations: u32) -> u16 {
    (0..9)
        .filter(|bit| locations >> bit & 1 == 1)
        .map(|bit| if bit == 8 { 1 << 1 } else { 1 << (10 - bit) })
        .sum()
}

/// Reads the number of objects, `complexity_index_type_a`, if `flag_ec3_extension_type_a` is set.
fn read_object_count(bits: &mut BitReader<'_>) -> Option<u8> {
    bits.skip(7);
    let flag = bits.read_bit();
    let objects = bits.read_bits_u8(8);
    (flag && !bits.is_past_end() && objects > 0).then_some(objects)
}
