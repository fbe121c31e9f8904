//! Groups renditions into AdaptationSets, and writes the attributes of these sets.

use super::elements::{write_attribute, write_property};
use super::text_sets::write_caption_channels;
use crate::codec::{CicpColor, Codec, TrackFormat, VideoFormat};
use crate::index::{AUDIO_PURPOSE_SCHEME, DASH_ROLE_SCHEME, Track};
use crate::manifest::audio_groups::group_audio;
use crate::manifest::audio_purpose::{
    accessibility_purposes, is_accessibility_audio, is_for_all_viewers, may_be_default,
};
use crate::manifest::escaping::XmlText;
use crate::manifest::{language_tag, track_facts};
use crate::presentation::{Presentation, Rendition, reduce_fraction};
use std::fmt::Write;

/// Renditions among which a player may switch at any segment.
pub(super) struct AdaptationSet<'a> {
    /// Never empty.
    pub(super) renditions: Vec<&'a Rendition>,
    /// Whether this is a video set, or the first audio set of its codec and channel count with its
    /// language and purpose. Only such a set has the role `main` by default.
    is_main: bool,
    /// Whether players should choose this set before its alternatives.
    is_default: bool,
    /// Identifies sets that differ only in their keys. Such sets have the same number.
    key_group: usize,
}

/// Namespaces of the elements that describe protection.
pub(super) const PROTECTION_NAMESPACES: &str = " xmlns:cenc=\"urn:mpeg:cenc:2013\" xmlns:mspr=\"urn:microsoft:playready\" xmlns:dashif=\"https://dashif.org/CPS\"";

/// Returns the ids of the other sets to which a player may switch from set `at`, although the keys
/// differ (ISO/IEC 23009-1, 5.3.3.5). Ids count from 1, and `at` counts from 0.
pub(super) fn list_switchable_sets(sets: &[AdaptationSet], at: usize) -> Vec<usize> {
    let group = sets.get(at).map(|set| set.key_group);
    let of_group = |(n, set): &(usize, &AdaptationSet)| *n != at && Some(set.key_group) == group;
    let ids = sets.iter().enumerate().filter(of_group).map(|(n, _)| n + 1);
    ids.collect()
}

/// Splits sets whose renditions have different keys, because a set can have only one default key
/// id.
fn split_by_key<'a>(
    presentation: &Presentation,
    sets: Vec<AdaptationSet<'a>>,
) -> Vec<AdaptationSet<'a>> {
    let key_id = |r: &Rendition| presentation.track_signaling(r).map(|s| s.protection.key_id);
    let mut split: Vec<AdaptationSet> = Vec::with_capacity(sets.len());
    for (key_group, set) in sets.into_iter().enumerate() {
        let first = split.len();
        for rendition in set.renditions {
            let own = split.get_mut(first..).unwrap_or_default();
            match own
                .iter_mut()
                .find(|set| key_id(set.renditions[0]) == key_id(rendition))
            {
                Some(set) => set.renditions.push(rendition),
                None => split.push(AdaptationSet {
                    renditions: vec![rendition],
                    is_main: set.is_main,
                    is_default: set.is_default,
                    key_group,
                }),
            }
        }
    }
    split
}

/// Groups video by segment grid, codec and colour, and audio by codec, channels, language and
/// programme.
pub(super) fn group_into_sets(presentation: &Presentation) -> Vec<AdaptationSet<'_>> {
    let mut sets: Vec<AdaptationSet> = Vec::new();
    let key = |r: &Rendition| {
        let codec = &presentation.track(r).codec;
        (
            r.switching_group,
            codec.fourcc,
            codec.video().and_then(|video| video.color),
        )
    };
    for rendition in presentation.video_renditions() {
        match sets
            .iter_mut()
            .find(|set| key(set.renditions[0]) == key(rendition))
        {
            Some(set) => set.renditions.push(rendition),
            None => sets.push(AdaptationSet {
                renditions: vec![rendition],
                is_main: true,
                is_default: false,
                key_group: 0,
            }),
        }
    }
    let families = group_audio(presentation, presentation.audio_renditions());
    let choices: usize = families.iter().map(|family| family.programmes.len()).sum();
    for family in families {
        for (n, programme) in family.programmes.into_iter().enumerate() {
            let track = presentation.track(programme.renditions[0]);
            sets.push(AdaptationSet {
                is_default: choices > 1 && n == 0 && may_be_default(presentation, track),
                renditions: programme.renditions,
                is_main: programme.first_of_language,
                key_group: 0,
            });
        }
    }
    split_by_key(presentation, sets)
}

impl AdaptationSet<'_> {
    /// Writes the start tag and the elements before SegmentTemplate.
    pub(super) fn write_adaptation_set_start(
        &self,
        out: &mut String,
        presentation: &Presentation,
        (id, switchable): (usize, &[usize]),
    ) {
        let track = presentation.track(self.renditions[0]);
        let codec = &track.codec;
        let kind = if codec.video().is_some() {
            "video"
        } else {
            "audio"
        };
        let _ = write!(out, "    <AdaptationSet id=\"{id}\" contentType=\"{kind}\"");
        if let Some(tag) = language_tag::shortest_tag(&track.language) {
            write_attribute(out, "lang", tag);
        }
        let group = self.renditions[0].switching_group;
        let aligned = self.renditions.iter().all(|r| r.switching_group == group);
        let sap = self.access_point_type();
        let _ = write!(
            out,
            " mimeType=\"{kind}/mp4\" segmentAlignment=\"{aligned}\" startWithSAP=\"{sap}\""
        );
        if self.is_default {
            out.push_str(" selectionPriority=\"2\"");
        }
        if codec.video().is_some() {
            self.write_video_attributes(out, presentation);
        }
        out.push_str(">\n");
        self.write_descriptors(out, presentation, codec);
        if !switchable.is_empty() {
            let ids: Vec<String> = switchable.iter().map(usize::to_string).collect();
            let scheme = "urn:mpeg:dash:adaptation-set-switching:2016";
            write_property(out, "SupplementalProperty", scheme, &ids.join(","));
        }
        if let Some(name) = &track.name {
            let _ = writeln!(out, "      <Label>{}</Label>", XmlText(name));
        }
        if codec.video().is_some() {
            write_caption_channels(out, presentation);
        }
        for purpose in accessibility_purposes(track) {
            write_property(out, "Accessibility", AUDIO_PURPOSE_SCHEME, purpose);
        }
        self.write_roles(out, track);
    }

    /// Writes the roles that the author declared. If no role is declared, the first set of a
    /// language gets the role `main`. Accessibility audio also gets the role `alternate`, as in DVB
    /// (ETSI TS 103 285).
    fn write_roles(&self, out: &mut String, track: &Track) {
        let implied = match (is_for_all_viewers(track), self.is_main) {
            (true, true) => "main",
            _ => "alternate",
        };
        if track.roles.is_empty() || is_accessibility_audio(track) {
            write_property(out, "Role", DASH_ROLE_SCHEME, implied);
        }
        let declared = track.roles.iter().map(|role| role.as_dash());
        for role in declared.filter(|role| !is_accessibility_audio(track) || *role != implied) {
            write_property(out, "Role", DASH_ROLE_SCHEME, role);
        }
    }

    /// Returns the highest type of stream access point that starts a segment (ISO/IEC 14496-12,
    /// annex I). With leading pictures, the type is 3, because in open GOPs these pictures cannot
    /// be decoded without the previous segment.
    fn access_point_type(&self) -> u32 {
        if self.renditions.iter().any(|r| r.has_leading_pictures) {
            3
        } else {
            1
        }
    }

    fn write_video_attributes(&self, out: &mut String, presentation: &Presentation) {
        let videos = || {
            let tracks = self.renditions.iter().map(|r| presentation.track(r));
            tracks.filter_map(|track| track.codec.video())
        };
        write_attribute(
            out,
            "maxWidth",
            videos().map(|v| v.width).max().unwrap_or(0),
        );
        write_attribute(
            out,
            "maxHeight",
            videos().map(|v| v.height).max().unwrap_or(0),
        );
        let rate = |(a, b): &(u64, u64)| a.saturating_mul(1_000_000) / b.max(&1);
        let rates = self.renditions.iter().map(|r| r.frame_rate);
        if let Some(fastest) = rates.max_by_key(rate) {
            write_attribute(out, "maxFrameRate", format_ratio(fastest, '/'));
        }
        let shape = |video: &VideoFormat| {
            let (width, height) = track_facts::display_size(video);
            reduce_fraction(width.into(), height.into())
        };
        // The aspect ratio of the largest picture is the most exact, because small renditions round
        // the ratio.
        if let Some(largest) = videos().max_by_key(|video| video.height) {
            let (across, down) = shape(largest);
            let _ = write!(out, " par=\"{across}:{down}\"");
        }
    }

    fn write_descriptors(&self, out: &mut String, presentation: &Presentation, codec: &Codec) {
        if let TrackFormat::Audio(audio) = &codec.format {
            let (scheme, value) = &audio.dash_channel_configuration;
            write_property(out, "AudioChannelConfiguration", scheme, value);
        }
        let signaling = presentation.track_signaling(self.renditions[0]);
        for element in signaling.iter().flat_map(|track| &track.dash_elements) {
            let _ = writeln!(out, "      {element}");
        }
        if let TrackFormat::Video(video) = &codec.format
            && let Some(color) = video.color
        {
            write_color_properties(out, color);
        }
    }

    /// Writes the start tag of a Representation, without its closing `>` or `/>`.
    pub(super) fn write_representation(
        &self,
        out: &mut String,
        presentation: &Presentation,
        rendition: &Rendition,
    ) {
        let track = presentation.track(rendition);
        out.push_str("      <Representation");
        write_attribute(out, "id", &rendition.name);
        write_attribute(out, "bandwidth", rendition.bandwidth.peak);
        write_attribute(out, "codecs", &track.codec.codec_string);
        if let Some(supplemental) = &track.codec.supplemental_codecs {
            write_attribute(out, "scte214:supplementalCodecs", supplemental);
        }
        if let Some(audio) = track.codec.audio() {
            write_attribute(out, "audioSamplingRate", audio.sample_rate);
        }
        if let Some(video) = track.codec.video() {
            write_attribute(out, "width", video.width);
            write_attribute(out, "height", video.height);
            write_attribute(out, "frameRate", format_ratio(rendition.frame_rate, '/'));
            let _ = write!(
                out,
                " sar=\"{}:{}\"",
                video.sar.0.max(1),
                video.sar.1.max(1)
            );
        }
    }
}

/// Formats a fraction as `25` or `24000/1001`.
fn format_ratio((a, b): (u64, u64), sign: char) -> String {
    if b == 1 {
        a.to_string()
    } else {
        format!("{a}{sign}{b}")
    }
}

/// Writes the colour properties (ISO/IEC 23091-2 according to DASH-IF IOP).
///
/// A player that does not support a wide gamut or PQ must not play such video as BT.709. The
/// properties of such video are therefore essential. The HLG transfer and BT.709 are supplemental,
/// because HLG is designed to be played as BT.709, and players assume BT.709. The value 2 means
/// "unspecified" and is not written.
fn write_color_properties(out: &mut String, color: CicpColor) {
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
        write_property(out, "EssentialProperty", scheme, &value.to_string());
    }
    for (scheme, value) in supplemental {
        write_property(out, "SupplementalProperty", scheme, &value.to_string());
    }
}
