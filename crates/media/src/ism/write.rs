//! Writing server manifests, as Unified's tools do.

use super::Kind;
use crate::codec::{Audio, AudioCoding, Codec, Media, Video};
use crate::index::{Index, Track};
use std::fmt::{self, Display, Write};

/// A server manifest of these files: the `src` by which it names each, and what is in it.
pub fn write<'a>(files: impl Iterator<Item = (&'a str, &'a Index)>) -> String {
    let mut out = String::from(HEAD);
    for (src, index) in files {
        for track in &index.tracks {
            // Writing to a string does not fail.
            let _ = element(&mut out, src, track);
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

fn element(out: &mut String, src: &str, track: &Track) -> fmt::Result {
    let codec = &track.codec;
    let kind = match &codec.media {
        Media::Video(_) => Kind::Video,
        Media::Audio(_) => Kind::Audio,
    };
    let name = kind.element();
    writeln!(
        out,
        r#"      <{name} src="{}" systemBitrate="{}" systemLanguage="{}">"#,
        Escaped(src),
        bitrate(track),
        Escaped(&track.language)
    )?;
    param(out, "trackID", track.id)?;
    param(out, "timescale", track.timescale)?;
    param(out, "FourCC", Escaped(&four_letters(codec)))?;
    match &codec.media {
        Media::Video(video) => visual(out, video)?,
        Media::Audio(audio) => sound(out, audio)?,
    }
    writeln!(out, "      </{name}>")
}

fn visual(out: &mut String, video: &Video) -> fmt::Result {
    if let Some(nal) = &video.nal {
        let sets = nal.parameter_sets.iter();
        let data: String = sets.map(|set| format!("00000001{}", Hex(set))).collect();
        param(out, "CodecPrivateData", data)?;
    }
    param(out, "MaxWidth", video.width)?;
    param(out, "MaxHeight", video.height)
}

fn sound(out: &mut String, audio: &Audio) -> fmt::Result {
    if audio.coding == AudioCoding::Aac {
        param(out, "CodecPrivateData", Hex(&audio.aac_config))?;
        // WAVE_FORMAT_RAW_AAC1
        param(out, "AudioTag", 255)?;
    }
    param(out, "Channels", audio.channels)?;
    param(out, "SamplingRate", audio.sample_rate)
}

fn param(out: &mut String, name: &str, value: impl Display) -> fmt::Result {
    writeln!(
        out,
        r#"        <param name="{name}" value="{value}" valuetype="data"/>"#
    )
}

/// As Smooth Streaming names codings: `AVC1`, `AACL`; else the sample entry's code.
fn four_letters(codec: &Codec) -> String {
    match &codec.fourcc {
        b"avc1" | b"avc3" => "AVC1".to_owned(),
        b"mp4a" => "AACL".to_owned(),
        other => crate::error::fourcc(*other),
    }
}

/// Bits a second of all samples.
fn bitrate(track: &Track) -> u64 {
    let bits = track
        .samples
        .bytes(0..track.samples.len())
        .saturating_mul(8);
    let ticks = u128::from(track.samples.end().max(1));
    let rate = u128::from(bits) * u128::from(track.timescale) / ticks;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// Text in an attribute. What XML 1.0 cannot hold becomes U+FFFD.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
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
