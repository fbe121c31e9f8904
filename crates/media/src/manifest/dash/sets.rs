//! Which renditions share an AdaptationSet, and what is said of them.

use super::attribute;
use crate::codec::{Cicp, Codec, Media, Video};
use crate::manifest::audio::families;
use crate::manifest::text::Xml;
use crate::manifest::{facts, language};
use crate::presentation::{Presentation, Rendition};
use std::fmt::Write;

/// Renditions among which a player may switch at any segment.
pub(super) struct Set<'a> {
    /// Never empty.
    pub(super) renditions: Vec<&'a Rendition>,
    /// Alternatives to another set of the same language (commentary) are not `main`.
    is_main: bool,
    /// Whether it should be chosen before its alternatives.
    is_default: bool,
}

/// Video by grid, codec and colour; audio by coding, channels, language and programme.
pub(super) fn sets(presentation: &Presentation) -> Vec<Set<'_>> {
    let mut sets: Vec<Set> = Vec::new();
    let key = |r: &Rendition| {
        let codec = &presentation.track(r).codec;
        (
            r.group,
            codec.fourcc,
            codec.video().and_then(|video| video.color),
        )
    };
    for rendition in presentation.videos() {
        match sets
            .iter_mut()
            .find(|set| key(set.renditions[0]) == key(rendition))
        {
            Some(set) => set.renditions.push(rendition),
            None => sets.push(Set {
                renditions: vec![rendition],
                is_main: true,
                is_default: false,
            }),
        }
    }
    let families = families(presentation, presentation.audios());
    let choices: usize = families.iter().map(|family| family.voices.len()).sum();
    for family in families {
        let default = family.default_voice(presentation);
        for (n, voice) in family.voices.into_iter().enumerate() {
            sets.push(Set {
                renditions: voice.renditions,
                is_main: voice.first_of_language,
                is_default: choices > 1 && n == default,
            });
        }
    }
    sets
}

impl Set<'_> {
    /// The start tag, and the elements that come before SegmentTemplate.
    pub(super) fn open(&self, out: &mut String, presentation: &Presentation, id: usize) {
        let track = presentation.track(self.renditions[0]);
        let codec = &track.codec;
        let kind = if codec.video().is_some() {
            "video"
        } else {
            "audio"
        };
        let _ = write!(out, "    <AdaptationSet id=\"{id}\" contentType=\"{kind}\"");
        if let Some(tag) = language::tag(&track.language) {
            attribute(out, "lang", tag);
        }
        let group = self.renditions[0].group;
        let aligned = self.renditions.iter().all(|r| r.group == group);
        let _ = write!(
            out,
            " mimeType=\"{kind}/mp4\" segmentAlignment=\"{aligned}\" startWithSAP=\"1\""
        );
        if self.is_default {
            out.push_str(" selectionPriority=\"2\"");
        }
        if codec.video().is_some() {
            self.video_attributes(out, presentation);
        }
        out.push_str(">\n");
        self.properties(out, codec);
        if let Some(name) = &track.name {
            let _ = writeln!(out, "      <Label>{}</Label>", Xml(name));
        }
        let role = if self.is_main { "main" } else { "alternate" };
        property(out, "Role", "urn:mpeg:dash:role:2011", role);
    }

    fn video_attributes(&self, out: &mut String, presentation: &Presentation) {
        let tracks = || self.renditions.iter().map(|r| presentation.track(r));
        let videos = || tracks().filter_map(|track| track.codec.video());
        attribute(
            out,
            "maxWidth",
            videos().map(|v| v.width).max().unwrap_or(0),
        );
        attribute(
            out,
            "maxHeight",
            videos().map(|v| v.height).max().unwrap_or(0),
        );
        let rate = |(a, b): &(u64, u64)| a.saturating_mul(1_000_000) / b.max(&1);
        if let Some(fastest) = tracks().map(facts::frame_rate).max_by_key(rate) {
            attribute(out, "maxFrameRate", ratio(fastest, '/'));
        }
        let shape = |video: &Video| {
            let (width, height) = facts::display_size(video);
            facts::lowest(width.into(), height.into())
        };
        // The picture's shape, from the largest; small renditions round it.
        if let Some(largest) = videos().max_by_key(|video| video.height) {
            let (across, down) = shape(largest);
            let _ = write!(out, " par=\"{across}:{down}\"");
        }
    }

    fn properties(&self, out: &mut String, codec: &Codec) {
        match &codec.media {
            Media::Audio(audio) => {
                let (scheme, value) = &audio.dash_channels;
                property(out, "AudioChannelConfiguration", scheme, value);
            }
            Media::Video(video) => video.color.into_iter().for_each(|color| cicp(out, color)),
        }
    }

    /// The Representation's start tag without its end.
    pub(super) fn representation(
        &self,
        out: &mut String,
        presentation: &Presentation,
        rendition: &Rendition,
    ) {
        let track = presentation.track(rendition);
        out.push_str("      <Representation");
        attribute(out, "id", &rendition.name);
        attribute(out, "bandwidth", rendition.bandwidth.peak);
        attribute(out, "codecs", &track.codec.string);
        if let Some(supplemental) = &track.codec.supplemental {
            attribute(out, "scte214:supplementalCodecs", supplemental);
        }
        if let Some(audio) = track.codec.audio() {
            attribute(out, "audioSamplingRate", audio.sample_rate);
        }
        if let Some(video) = track.codec.video() {
            attribute(out, "width", video.width);
            attribute(out, "height", video.height);
            attribute(out, "frameRate", ratio(facts::frame_rate(track), '/'));
            let _ = write!(
                out,
                " sar=\"{}:{}\"",
                video.sar.0.max(1),
                video.sar.1.max(1)
            );
        }
    }
}

/// `25`, or `24000/1001`.
fn ratio((a, b): (u64, u64), sign: char) -> String {
    if b == 1 {
        a.to_string()
    } else {
        format!("{a}{sign}{b}")
    }
}

fn property(out: &mut String, element: &str, scheme: &str, value: &str) {
    let _ = write!(out, "      <{element}");
    attribute(out, "schemeIdUri", scheme);
    attribute(out, "value", value);
    out.push_str("/>\n");
}

/// Colour properties (ISO/IEC 23091-2 by DASH-IF IOP). A player that does not know wide or
/// high-range colour must not play it as if it were BT.709, so that is essential; HLG is made
/// to be played so, and BT.709 only confirms what players assume. 2 means unspecified.
fn cicp(out: &mut String, color: Cicp) {
    let wide = color.primaries == 9 || color.transfer == 16;
    let mut essential = Vec::new();
    let mut supplemental = Vec::new();
    for (scheme, value) in [
        ("urn:mpeg:mpegB:cicp:ColourPrimaries", color.primaries),
        (
            "urn:mpeg:mpegB:cicp:TransferCharacteristics",
            color.transfer,
        ),
        ("urn:mpeg:mpegB:cicp:MatrixCoefficients", color.matrix),
    ] {
        match value {
            2 => {}
            18 => supplemental.push((scheme, value)),
            _ if wide => essential.push((scheme, value)),
            _ => supplemental.push((scheme, value)),
        }
    }
    for (scheme, value) in essential {
        property(out, "EssentialProperty", scheme, &value.to_string());
    }
    for (scheme, value) in supplemental {
        property(out, "SupplementalProperty", scheme, &value.to_string());
    }
}
