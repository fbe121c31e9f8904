//! Opus in Opus entries: `OpusSpecificBox` ("Encapsulation of Opus in ISO Base Media File
//! Format", 4.3.2).

use super::ac3::codec;
use super::audio_entry::AudioEntry;
use super::{Audio, AudioCoding, Codec, channels};
use crate::bytes::Reader;
use crate::error::{Error, Result};

/// Opus always decodes to 48 kHz, whatever rate it was made from.
const RATE: u32 = 48_000;

/// An Opus entry.
pub fn parse(entry: &AudioEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"dOps", entry.code)?;
    let mut reader = Reader::new(body);
    reader.skip(1); // Version
    let count = u32::from(reader.u8());
    reader.skip(2 + 4 + 2); // PreSkip, InputSampleRate, OutputGain
    let family = reader.u8();
    reader.done()?;
    if count == 0 {
        return Err(Error::malformed("the dOps box says 0 channels"));
    }
    // Only families 0 and 1 have the loudspeakers of RFC 7845, 5.1.1.
    let layout = channels::cicp_of_count(count).filter(|_| family <= 1);
    let sample_entry = entry.write((*b"dOps", body), count, RATE);
    Ok(codec(
        entry.code,
        sample_entry,
        "opus",
        Audio {
            coding: AudioCoding::Opus,
            sample_rate: RATE,
            channels: count,
            hls_channels: count.to_string(),
            dash_channels: channels::cicp(layout, count),
            aac_config: Vec::new(),
        },
    ))
}
