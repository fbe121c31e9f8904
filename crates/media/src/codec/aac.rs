//! AAC in mp4a entries (ISO/IEC 14496-14, 5.6), and MP3 in them or in QuickTime's own.

use super::asc::AudioSpecificConfig;
use super::audio_entry::AudioEntry;
use super::entry::{Child, Children};
use super::esds::{self, Esds};
use super::{Audio, AudioCoding, Codec, Media, channels};
use crate::error::{Error, Result};

/// An mp4a entry: AAC or MP3 by the object type of its esds box.
pub fn parse(entry: &AudioEntry<'_>) -> Result<Codec> {
    let body = entry.children.need(b"esds", entry.code)?;
    let inside = |error: Error| error.inside(*b"esds");
    let esds = Esds::read(body).map_err(inside)?;
    match esds.object_type {
        0x40 | 0x66..=0x68 => aac(entry, body, esds).map_err(inside),
        0x69 | 0x6b => mp3(entry, body),
        other => Err(Error::unsupported(format!(
            "mp4a with object type 0x{other:02x} is neither AAC nor MP3; encode it as AAC"
        ))),
    }
}

/// QuickTime's `.mp3` entry: served as mp4a with an esds box of our making.
pub fn parse_mp3(entry: &AudioEntry<'_>) -> Result<Codec> {
    // MPEG-1 layer III is object type 0x6b; the lower rates of MPEG-2 are 0x69.
    let object_type = if entry.sample_rate < 32_000 {
        0x69
    } else {
        0x6b
    };
    mp3(entry, &esds::write_plain(object_type))
}

/// `mp4a.40.34` is what Apple and hls.js know; the registered `mp4a.6B` makes players that ask
/// Media Source Extensions drop the rendition, though they could play it as audio/mpeg.
fn mp3(entry: &AudioEntry<'_>, esds: &[u8]) -> Result<Codec> {
    let (count, sample_rate) = (entry.channels.clamp(1, 2), entry.sample_rate);
    if sample_rate == 0 {
        return Err(Error::malformed("the MP3 entry has no sampling rate"));
    }
    let sample_entry = if entry.code == *b"mp4a" {
        entry.write((*b"esds", esds), count, sample_rate)
    } else {
        let child = Child {
            name: *b"esds",
            body: esds,
        };
        entry.write_as(*b"mp4a", &Children(vec![child]), count, sample_rate)
    };
    Ok(Codec {
        fourcc: *b"mp4a",
        sample_entry,
        string: "mp4a.40.34".to_owned(),
        supplemental: None,
        media: Media::Audio(Audio {
            coding: AudioCoding::Mp3,
            sample_rate,
            channels: count,
            hls_channels: count.to_string(),
            dash_channels: channels::cicp(Some(count as u8), count),
            aac_config: Vec::new(),
        }),
    })
}

fn aac(entry: &AudioEntry<'_>, body: &[u8], esds: Esds<'_>) -> Result<Codec> {
    let asc = AudioSpecificConfig::read(esds.config)?;
    // Implicit signalling: decoders find SBR in the frames; the file tells by a doubled rate.
    let doubled = !asc.sbr_known && entry.sample_rate == asc.core_rate * 2;
    let implicit = (doubled && asc.object_type == 2).then_some(entry.sample_rate);
    let sbr_rate = asc.sbr_rate.or(implicit);
    let core = if asc.channels == 0 {
        entry.channels
    } else {
        asc.channels
    };
    let count = if asc.ps && core == 1 { 2 } else { core };
    if count == 0 {
        return Err(Error::malformed("the AAC configuration has no channels"));
    }
    let sample_rate = sbr_rate.unwrap_or(asc.core_rate);
    let layout = match asc.channel_config {
        _ if count != core => Some(2),
        0 => channels::cicp_of_count(count),
        config => Some(config),
    };
    Ok(Codec {
        fourcc: entry.code,
        sample_entry: entry.write((*b"esds", body), count, sample_rate),
        string: string(esds.object_type, &asc, sbr_rate.is_some()),
        supplemental: None,
        media: Media::Audio(Audio {
            coding: AudioCoding::Aac,
            sample_rate,
            channels: count,
            hls_channels: count.to_string(),
            dash_channels: channels::cicp(layout, count),
            aac_config: esds.config.to_vec(),
        }),
    })
}

/// RFC 6381, 3.3: MPEG-2 AAC is named by its object type indication alone.
fn string(indication: u8, asc: &AudioSpecificConfig, sbr: bool) -> String {
    match (indication, asc.object_type) {
        (0x40, 2) if asc.ps => "mp4a.40.29".to_owned(),
        (0x40, 2) if sbr => "mp4a.40.5".to_owned(),
        (0x40, core) => format!("mp4a.40.{core}"),
        (other, _) => format!("mp4a.{other:02X}"),
    }
}
