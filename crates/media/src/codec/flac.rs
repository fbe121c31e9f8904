//! FLAC in fLaC entries: `FLACSpecificBox` ("Encapsulation of FLAC in ISO Base Media File
//! Format", 3.3.2) with STREAMINFO (RFC 9639, 8.2).

use super::ac3::codec;
use super::audio_entry::AudioEntry;
use super::bits::Bits;
use super::{Audio, AudioCoding, Codec, channels};
use crate::error::{Error, Result};

/// A fLaC entry. The codec string is the registered code: Chromium takes `flac` as well, Apple
/// only lists `fLaC`.
pub fn parse(entry: &AudioEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"dfLa", entry.code)?;
    let mut bits = Bits::new(body);
    bits.skip(32 + 1); // version and flags; LastMetadataBlockFlag
    let kind = bits.u(7);
    bits.skip(24 + 16 + 16 + 24 + 24); // block length, block and frame sizes
    let sample_rate = bits.u(20);
    let count = bits.u(3) + 1;
    if kind != 0 || bits.short() || sample_rate == 0 {
        let what = "the dfLa box does not begin with a sound STREAMINFO";
        return Err(Error::malformed(what));
    }
    let sample_entry = entry.write((*b"dfLa", body), count, sample_rate);
    Ok(codec(
        entry.code,
        sample_entry,
        "fLaC",
        Audio {
            coding: AudioCoding::Flac,
            sample_rate,
            channels: count,
            hls_channels: count.to_string(),
            dash_channels: channels::cicp(channels::cicp_of_count(count), count),
            aac_config: Vec::new(),
        },
    ))
}
