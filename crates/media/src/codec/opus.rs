//! Opus in `Opus` entries: `OpusSpecificBox` ("Encapsulation of Opus in ISO Base Media File
//! Format", 4.3.2).

use super::ac3::build_fixed_string_codec;
use super::audio_sample_entry::AudioSampleEntry;
use super::{AudioCoding, AudioFormat, Codec, channel_configuration};
use crate::bytes::ByteReader;
use crate::error::{Error, Result};

/// Sampling rate in Hz. Opus always decodes to this rate, whatever the input rate was.
const RATE: u32 = 48_000;

/// Parses an `Opus` entry.
pub fn parse_opus_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"dOps", entry.code)?;
    let mut reader = ByteReader::new(body);
    reader.skip(1); // Version
    let count = u32::from(reader.u8());
    reader.skip(2 + 4 + 2); // PreSkip, InputSampleRate, OutputGain
    let family = reader.u8();
    reader.check_no_short_read()?;
    if count == 0 {
        return Err(Error::malformed("the dOps box declares 0 channels"));
    }
    // Only channel mapping families 0 and 1 have the channel layouts of RFC 7845, 5.1.1.
    let layout = channel_configuration::cicp_layout_of_count(count).filter(|_| family <= 1);
    let sample_entry = entry.write_iso_entry((*b"dOps", body), count, RATE);
    Ok(build_fixed_string_codec(
        entry.code,
        sample_entry,
        "opus",
        AudioFormat {
            coding: AudioCoding::Opus,
            sample_rate: RATE,
            channel_count: count,
            hls_channels: count.to_string(),
            dash_channel_configuration: channel_configuration::cicp_channel_configuration(
                layout, count,
            ),
            audio_specific_config: Vec::new(),
        },
    ))
}
