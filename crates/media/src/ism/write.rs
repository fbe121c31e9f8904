//! Writes server manifests in the format of Unified's tools.

use super::SmilTrackKind;
use crate::codec::{AudioCoding, AudioFormat, Codec, TrackFormat, VideoFormat};
use crate::index::{Index, Track};
use std::fmt::{self, Display, Write};

/// Writes a server manifest of `files`. Each file is given by its `src` attribute and its index.
pub fn write_server_manifest<'a>(files: impl Iterator<Item = (&'a str, &'a Index)>) -> String {
    let mut out = String::from(HEAD);
    for (src, index) in files {
        for track in &index.tracks {
            // Writing to a string cannot fail.
            let _ = write_smil_track(&mut out, src, track);
        }
    }
    out.push_str("    </switch>\n  </body>\n</smil>\n");
    out
}

const HEAD: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<smil xmlns="http://www.w3.org/2001/SMIL20/Language">
  <head>
    <meta name="creator" content="Headwater"/>
  </head>
  <body>
    <switch>
"#;

fn write_smil_track(out: &mut String, src: &str, track: &Track) -> fmt::Result {
    let codec = &track.codec;
    let kind = match &codec.format {
        TrackFormat::Video(_) => SmilTrackKind::Video,
        TrackFormat::Audio(_) => SmilTrackKind::Audio,
        TrackFormat::Text(_) => SmilTrackKind::Text,
    };
    let name = kind.element_name();
    writeln!(
        out,
        r#"      <{name} src="{}" systemBitrate="{}" systemLanguage="{}">"#,
        XmlAttributeText(src),
        mean_bitrate(track),
        XmlAttributeText(&track.language)
    )?;
    write_param(out, "trackID", track.id)?;
    write_param(out, "timescale", track.timescale)?;
    write_param(out, "FourCC", XmlAttributeText(&smooth_fourcc(codec)))?;
    match &codec.format {
        TrackFormat::Video(video) => write_video_params(out, video)?,
        TrackFormat::Audio(audio) => write_audio_params(out, audio)?,
        TrackFormat::Text(_) => {}
    }
    writeln!(out, "      </{name}>")
}

fn write_video_params(out: &mut String, video: &VideoFormat) -> fmt::Result {
    if let Some(nal) = &video.nal {
        let sets = nal.parameter_sets.iter();
        let data: String = sets
            .map(|set| format!("00000001{}", HexBytes(set)))
            .collect();
        write_param(out, "CodecPrivateData", data)?;
    }
    write_param(out, "MaxWidth", video.width)?;
    write_param(out, "MaxHeight", video.height)
}

fn write_audio_params(out: &mut String, audio: &AudioFormat) -> fmt::Result {
    if audio.coding == AudioCoding::Aac {
        write_param(
            out,
            "CodecPrivateData",
            HexBytes(&audio.audio_specific_config),
        )?;
        // WAVE_FORMAT_RAW_AAC1
        write_param(out, "AudioTag", 255)?;
    }
    write_param(out, "Channels", audio.channel_count)?;
    write_param(out, "SamplingRate", audio.sample_rate)
}

fn write_param(out: &mut String, name: &str, value: impl Display) -> fmt::Result {
    writeln!(
        out,
        r#"        <param name="{name}" value="{value}" valuetype="data"/>"#
    )
}

/// Returns the Smooth Streaming name of the codec: `AVC1`, `AACL`, or the code of the sample entry.
fn smooth_fourcc(codec: &Codec) -> String {
    match &codec.fourcc {
        b"avc1" | b"avc3" => "AVC1".to_owned(),
        b"mp4a" => "AACL".to_owned(),
        other => crate::error::format_fourcc(*other),
    }
}

/// Returns the mean bitrate of all samples, in bits per second.
fn mean_bitrate(track: &Track) -> u64 {
    let bits = track
        .samples
        .byte_count(0..track.samples.len())
        .saturating_mul(8);
    let ticks = u128::from(track.samples.total_duration().max(1));
    let rate = u128::from(bits) * u128::from(track.timescale) / ticks;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

struct HexBytes<'a>(&'a [u8]);

impl Display for HexBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// Text in an attribute. Characters that XML 1.0 cannot contain become U+FFFD.
struct XmlAttributeText<'a>(&'a str);

impl Display for XmlAttributeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '"' => f.write_str("&quot;"),
            '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(c)),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER),
            c => f.write_char(c),
        })
    }
}
