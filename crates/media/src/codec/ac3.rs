//! AC-3 in ac-3 entries: `AC3SpecificBox` (ETSI TS 102 366, F.4).

use super::audio_sample_entry::AudioSampleEntry;
use super::bit_reader::BitReader;
use super::{AudioCoding, AudioFormat, Codec, TrackFormat, channel_configuration};
use crate::error::{Error, Result};

/// Sampling rates in Hz, indexed by `fscod` (4.4.1.3).
const RATES: [u32; 3] = [48_000, 44_100, 32_000];

/// Parses an `ac-3` entry.
pub fn parse_ac3_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"dac3", entry.code)?;
    let mut bits = BitReader::new(body);
    let fscod = bits.read_bits(2);
    bits.skip(5 + 3); // bsid, bsmod
    let map = channel_map_of_acmod(bits.read_bits_u8(3), bits.read_bit());
    if bits.is_past_end() {
        return Err(Error::malformed("the dac3 box is truncated"));
    }
    let sample_rate = resolve_sample_rate(fscod, entry)?;
    let count = channel_configuration::count_dolby_channels(map);
    let sample_entry = entry.write_iso_entry((*b"dac3", body), count, sample_rate);
    Ok(build_fixed_string_codec(
        entry.code,
        sample_entry,
        "ac-3",
        AudioFormat {
            coding: AudioCoding::Ac3,
            sample_rate,
            channel_count: count,
            hls_channels: count.to_string(),
            dash_channel_configuration: channel_configuration::dolby_channel_configuration(map),
            audio_specific_config: Vec::new(),
        },
    ))
}

/// Builds the codec of an audio format that has a fixed codec string.
pub fn build_fixed_string_codec(
    fourcc: [u8; 4],
    sample_entry: Vec<u8>,
    string: &str,
    audio: AudioFormat,
) -> Codec {
    Codec {
        fourcc,
        sample_entry,
        codec_string: string.to_owned(),
        supplemental_codecs: None,
        format: TrackFormat::Audio(audio),
    }
}

/// Returns the sampling rate for `fscod`, in Hz. For a reserved code, returns the rate that the
/// entry declares.
pub fn resolve_sample_rate(fscod: u32, entry: &AudioSampleEntry<'_>) -> Result<u32> {
    match (RATES.get(fscod as usize), entry.sample_rate) {
        (Some(rate), _) => Ok(*rate),
        (None, 0) => Err(Error::malformed("a reserved sampling rate code")),
        (None, declared) => Ok(declared),
    }
}

/// Returns the channel map (Table E.1.4) for `acmod` (4.4.2.3) and `lfeon`.
///
/// Bit 0 is the highest bit of the map. Bits 0 to 4 are L, C, R, Ls and Rs, bit 7 is Cs, and bit 15
/// is LFE.
pub fn channel_map_of_acmod(acmod: u8, lfe: bool) -> u16 {
    const MAPS: [u16; 8] = [
        0xa000, 0x4000, 0xa000, 0xe000, 0xa100, 0xe100, 0xb800, 0xf800,
    ];
    MAPS[usize::from(acmod & 7)] | u16::from(lfe)
}
