//! AAC in `mp4a` entries (ISO/IEC 14496-14, 5.6), and MP3 in `mp4a` entries or QuickTime's own
//! entries.

use super::audio_sample_entry::AudioSampleEntry;
use super::audio_specific_config::AudioSpecificConfig;
use super::child_boxes::{ChildBox, ChildBoxes};
use super::esds::{self, Esds};
use super::{AudioCoding, AudioFormat, Codec, TrackFormat, channel_configuration};
use crate::error::{Error, Result};

/// Parses an `mp4a` entry. The object type in its `esds` box decides between AAC and MP3.
pub fn parse_mp4a_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    let body = entry.children.require_body(b"esds", entry.code)?;
    let inside = |error: Error| error.with_enclosing_box(*b"esds");
    let esds = Esds::parse(body).map_err(inside)?;
    match esds.object_type {
        0x40 | 0x66..=0x68 => aac_codec_from_entry(entry, body, esds).map_err(inside),
        0x69 | 0x6b => mp3_codec_from_entry(entry, body),
        other => Err(Error::unsupported(format!(
            "mp4a with object type 0x{other:02x} is neither AAC nor MP3; encode it as AAC"
        ))),
    }
}

/// Parses QuickTime's `.mp3` entry. The track is served with an `mp4a` entry and a generated `esds`
/// box.
pub fn parse_mp3_entry(entry: &AudioSampleEntry<'_>) -> Result<Codec> {
    // MPEG-1 layer III has object type 0x6b. MPEG-2 layer III has lower sampling rates and object
    // type 0x69.
    let object_type = if entry.sample_rate < 32_000 {
        0x69
    } else {
        0x6b
    };
    mp3_codec_from_entry(entry, &esds::write_esds_body(object_type))
}

/// Builds the codec of an MP3 track.
///
/// The codec string is `mp4a.40.34`, which Apple and hls.js accept. The registered string is
/// `mp4a.6B`. However, players that check this string with Media Source Extensions drop the
/// rendition, although these players could play the MP3 data as audio/mpeg.
fn mp3_codec_from_entry(entry: &AudioSampleEntry<'_>, esds: &[u8]) -> Result<Codec> {
    let (count, sample_rate) = (entry.channel_count.clamp(1, 2), entry.sample_rate);
    if sample_rate == 0 {
        return Err(Error::malformed("the MP3 entry has no sampling rate"));
    }
    let sample_entry = if entry.code == *b"mp4a" {
        entry.write_iso_entry((*b"esds", esds), count, sample_rate)
    } else {
        let child = ChildBox {
            name: *b"esds",
            body: esds,
        };
        entry.write_version_0_entry(*b"mp4a", &ChildBoxes(vec![child]), count, sample_rate)
    };
    Ok(Codec {
        fourcc: *b"mp4a",
        sample_entry,
        codec_string: "mp4a.40.34".to_owned(),
        supplemental_codecs: None,
        format: TrackFormat::Audio(AudioFormat {
            coding: AudioCoding::Mp3,
            sample_rate,
            channel_count: count,
            hls_channels: count.to_string(),
            dash_channel_configuration: channel_configuration::cicp_channel_configuration(
                Some(count as u8),
                count,
            ),
            audio_specific_config: Vec::new(),
        }),
    })
}

fn aac_codec_from_entry(
    entry: &AudioSampleEntry<'_>,
    body: &[u8],
    esds: Esds<'_>,
) -> Result<Codec> {
    let asc = AudioSpecificConfig::parse(esds.decoder_specific_info)?;
    // With implicit signalling, the only sign of SBR is that the entry declares twice the sampling
    // rate of the core.
    let doubled = !asc.sbr_is_signalled && entry.sample_rate == asc.core_sample_rate * 2;
    let implicit = (doubled && asc.object_type == 2).then_some(entry.sample_rate);
    let sbr_rate = asc.sbr_sample_rate.or(implicit);
    let core = if asc.channel_count == 0 {
        entry.channel_count
    } else {
        asc.channel_count
    };
    let count = if asc.has_parametric_stereo && core == 1 {
        2
    } else {
        core
    };
    if count == 0 {
        return Err(Error::malformed("the AAC configuration has no channels"));
    }
    let sample_rate = sbr_rate.unwrap_or(asc.core_sample_rate);
    let layout = match asc.channel_configuration {
        _ if count != core => Some(2),
        0 => channel_configuration::cicp_layout_of_count(count),
        config => Some(config),
    };
    Ok(Codec {
        fourcc: entry.code,
        sample_entry: entry.write_iso_entry((*b"esds", body), count, sample_rate),
        codec_string: format_codec_string(esds.object_type, &asc, sbr_rate.is_some()),
        supplemental_codecs: None,
        format: TrackFormat::Audio(AudioFormat {
            coding: AudioCoding::Aac,
            sample_rate,
            channel_count: count,
            hls_channels: count.to_string(),
            dash_channel_configuration: channel_configuration::cicp_channel_configuration(
                layout, count,
            ),
            audio_specific_config: esds.decoder_specific_info.to_vec(),
        }),
    })
}

/// Formats the codec string. For MPEG-2 AAC, the string contains only the object type indication
/// (RFC 6381, 3.3).
fn format_codec_string(indication: u8, asc: &AudioSpecificConfig, sbr: bool) -> String {
    match (indication, asc.object_type) {
        (0x40, 2) if asc.has_parametric_stereo => "mp4a.40.29".to_owned(),
        (0x40, 2) if sbr => "mp4a.40.5".to_owned(),
        (0x40, core) => format!("mp4a.40.{core}"),
        (other, _) => format!("mp4a.{other:02X}"),
    }
}
