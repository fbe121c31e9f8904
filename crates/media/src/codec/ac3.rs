//! AC-3 in ac-3 entries: `AC3SpecificBox` (ETSI TS 102 366, F.4).

use super::audio_entry::AudioEntry;
use super::bits::Bits;
use super::{Audio, AudioCoding, Codec, Media, channels};
use crate::error::{Error, Result};

/// Samples a second by `fscod` (4.4.1.3).
const RATES: [u32; 3] = [48_000, 44_100, 32_000];

/// An ac-3 entry.
pub fn parse(entry: &AudioEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"dac3", entry.code)?;
    let mut bits = Bits::new(body);
    let fscod = bits.u(2);
    bits.skip(5 + 3); // bsid, bsmod
    let map = channel_map(bits.u8(3), bits.bit());
    if bits.short() {
        return Err(Error::malformed("the dac3 box is cut off"));
    }
    let sample_rate = sample_rate(fscod, entry)?;
    let count = channels::dolby_count(map);
    let sample_entry = entry.write((*b"dac3", body), count, sample_rate);
    Ok(codec(
        entry.code,
        sample_entry,
        "ac-3",
        Audio {
            coding: AudioCoding::Ac3,
            sample_rate,
            channels: count,
            hls_channels: count.to_string(),
            dash_channels: channels::dolby(map),
            aac_config: Vec::new(),
        },
    ))
}

/// A codec of sound with a fixed codec string.
pub fn codec(fourcc: [u8; 4], sample_entry: Vec<u8>, string: &str, audio: Audio) -> Codec {
    Codec {
        fourcc,
        sample_entry,
        string: string.to_owned(),
        supplemental: None,
        media: Media::Audio(audio),
    }
}

/// Samples a second by `fscod`; a reserved code leaves it to the entry.
pub fn sample_rate(fscod: u32, entry: &AudioEntry<'_>) -> Result<u32> {
    match (RATES.get(fscod as usize), entry.sample_rate) {
        (Some(rate), _) => Ok(*rate),
        (None, 0) => Err(Error::malformed("a reserved sampling rate code")),
        (None, declared) => Ok(declared),
    }
}

/// Loudspeakers by `acmod` (4.4.2.3) and `lfeon`, as a channel map (Table E.1.4): from the
/// highest bit L, C, R, Ls, Rs; bit 7 Cs; bit 15 LFE.
pub fn channel_map(acmod: u8, lfe: bool) -> u16 {
    const MAPS: [u16; 8] = [
        0xa000, 0x4000, 0xa000, 0xe000, 0xa100, 0xe100, 0xb800, 0xf800,
    ];
    MAPS[usize::from(acmod & 7)] | u16::from(lfe)
}
