//! FLAC in fLaC entries: `FLACSpecificBox` ("Encapsulation of FLAC in ISO Base Media File
//! Format", 3.3.2) with STREAMINFO (RFC 9639, 8.2).

use super::ac3::build_fixed_string_codec;
use super::audio_sample_entry::AudioSampleEntry;
use super::bit_reader::BitReader;
use super::{AudioCoding, AudioFormat, Codec, channel_configuration};
use crate::error::{Error, Result};

/// Parses an `fLaC` entry. The codec string is the registered code `fLaC`, because Apple's list of
/// codecs contains only this form. Chromium also accepts `flac`.
pub fn parse_flac_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"dfLa", entry.code)?;
    let mut bits = BitReader::new(body);
    bits.skip(32 + 1); // version and flags; LastMetadataBlockFlag
    let kind = bits.read_bits(7);
    bits.skip(24 + 16 + 16 + 24 + 24); // block length, block and frame sizes
    let sample_rate = bits.read_bits(20);
    let count = bits.read_bits(3) + 1;
    if kind != 0 || bits.is_past_end() || sample_rate == 0 {
        let message = "the dfLa box does not start with a valid STREAMINFO";
        return Err(Error::malformed(message));
    }
    let sample_entry = entry.write_iso_entry((*b"dfLa", body), count, sample_rate);
    Ok(build_fixed_string_codec(
        entry.code,
        sample_entry,
        "fLaC",
        AudioFormat {
            coding: AudioCoding::Flac,
            sample_rate,
            channel_count: count,
            hls_channels: count.to_string(),
            dash_channel_configuration: channel_configuration::cicp_channel_configuration(
                channel_configuration::cicp_layout_of_count(count),
                count,
            ),
            audio_specific_config: Vec::new(),
        },
    ))
}
