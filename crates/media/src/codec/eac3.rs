//! E-AC-3 in ec-3 entries: `EC3SpecificBox` (ETSI TS 102 366, F.6), with the sign of joint
//! object coding (ETSI TS 103 420, 8.3): Atmos.

use super::ac3::{channel_map, codec, sample_rate};
use super::audio_entry::AudioEntry;
use super::bits::Bits;
use super::{Audio, AudioCoding, Codec, channels};
use crate::error::{Error, Result};

/// An ec-3 entry. Channels are those of the first programme: its independent substream and the
/// dependent ones.
pub fn parse(entry: &AudioEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"dec3", entry.code)?;
    let mut bits = Bits::new(body);
    bits.skip(13); // data_rate
    let substreams = bits.u(3) + 1;
    let (fscod, map) = read_substream(&mut bits);
    for _ in 1..substreams {
        read_substream(&mut bits);
    }
    if bits.short() {
        return Err(Error::malformed("the dec3 box is cut off"));
    }
    let sample_rate = sample_rate(fscod, entry)?;
    let count = channels::dolby_count(map);
    let hls_channels = match read_complexity(&mut bits) {
        Some(objects) => format!("{objects}/JOC"),
        None => count.to_string(),
    };
    let sample_entry = entry.write((*b"dec3", body), count, sample_rate);
    Ok(codec(
        entry.code,
        sample_entry,
        "ec-3",
        Audio {
            coding: AudioCoding::Eac3,
            sample_rate,
            channels: count,
            hls_channels,
            dash_channels: channels::dolby(map),
            aac_config: Vec::new(),
        },
    ))
}

/// `fscod` and channel map of one independent substream with its dependent ones.
fn read_substream(bits: &mut Bits<'_>) -> (u32, u16) {
    let fscod = bits.u(2);
    bits.skip(5 + 1 + 1 + 3); // bsid, reserved, asvc, bsmod
    let mut map = channel_map(bits.u8(3), bits.bit());
    bits.skip(3);
    if bits.u(4) == 0 {
        bits.skip(1);
    } else {
        map |= location_map(bits.u(9));
    }
    (fscod, map)
}

/// `chan_loc` (Table F.6.1), lowest bit first: Lc/Rc, Lrs/Rrs, Cs, Ts, Lsd/Rsd, Lw/Rw, Lvh/Rvh,
/// Cvh, LFE2. The channel map has them in the same order from its sixth bit on, but for the
/// top surrounds (Lts/Rts) before LFE2.
fn location_map(locations: u32) -> u16 {
    (0..9)
        .filter(|bit| locations >> bit & 1 == 1)
        .map(|bit| if bit == 8 { 1 << 1 } else { 1 << (10 - bit) })
        .sum()
}

/// `complexity_index_type_a`, the number of objects, where `flag_ec3_extension_type_a` is set.
fn read_complexity(bits: &mut Bits<'_>) -> Option<u8> {
    bits.skip(7);
    let flag = bits.bit();
    let objects = bits.u8(8);
    (flag && !bits.short() && objects > 0).then_some(objects)
}
