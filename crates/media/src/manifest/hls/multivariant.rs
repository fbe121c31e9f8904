//! Writes multivariant playlists (RFC 8216, 4.3.4).

use super::score::format_score;
use super::text::{TextVariantAttributes, write_text_group};
use super::{
    INDEPENDENT_SEGMENTS, SegmentPacking, bandwidth_with_packing, playlist_version,
    segment_extension,
};
use crate::index::Track;
use crate::manifest::audio_groups::{AudioFamily, AudioProgramme, group_audio};
use crate::manifest::audio_purpose::{
    is_accessibility_audio, is_for_all_viewers, may_be_default, media_characteristics, purpose_name,
};
use crate::manifest::escaping::QuotedString;
use crate::manifest::{SegmentFormat, language_tag, track_facts, url};
use crate::presentation::{Bandwidth, Presentation, Rendition};
use crate::time::Time;
use std::fmt::Write;

/// The audio renditions with one `GROUP-ID`. The group contains one rendition of each programme in
/// a family. The programmes of families that have no groups of their own are added to every group.
struct AudioGroup<'a> {
    id: String,
    codec_strings: Vec<&'a str>,
    /// Largest peak bandwidth and largest average bandwidth of the group's renditions.
    bandwidth: Bandwidth,
    default_rendition: &'a Rendition,
    /// Whether `EXT-X-MEDIA` tags list the group.
    is_listed: bool,
}

/// `EXT-X-VERSION` of playlists with an attribute that starts with `REQ-` (RFC 8216bis, 8).
const VERSION_OF_REQUIREMENTS: u32 = 12;

/// Attributes by which players select a rendition of a group automatically. The renditions that
/// players may select automatically must differ in these attributes (RFC 8216, 4.3.4.1.1).
#[derive(PartialEq)]
struct AutoselectKey {
    language: Option<String>,
    characteristics: Vec<&'static str>,
}

impl AutoselectKey {
    fn from_track(track: &Track) -> AutoselectKey {
        AutoselectKey {
            language: language_tag::shortest_tag(&track.language),
            characteristics: media_characteristics(track).collect(),
        }
    }
}

/// Writes the multivariant playlist. Returns `None` if the format does not support the title.
///
/// A format supports a title if it supports at least one of the title's video codecs. If the title
/// is audio only, the format must support at least one of the audio codecs. Each video rendition is
/// listed with each audio group. The variants with the first audio group are listed first, in the
/// order of the presentation. The first variant therefore has the first video rendition of the
/// presentation, with which players should start. If segments are encrypted, there are no I-frame
/// playlists.
pub fn write_multivariant_playlist(
    presentation: &Presentation,
    format: SegmentFormat,
    encrypted: bool,
) -> Option<String> {
    let packing = SegmentPacking {
        format,
        is_encrypted: encrypted,
    };
    let carried =
        |r: &&Rendition| segment_extension(format, &presentation.track(r).codec).is_some();
    let videos: Vec<&Rendition> = presentation.video_renditions().filter(carried).collect();
    let families = group_audio(
        presentation,
        presentation.audio_renditions().filter(carried),
    );
    // A film with video is not served as audio only. If the format supports none of its video
    // codecs, there is no playlist.
    let all_lost = videos.is_empty() && presentation.video_renditions().next().is_some();
    if all_lost || (videos.is_empty() && families.is_empty()) {
        return None;
    }
    let mut out = String::with_capacity(1024 + 512 * presentation.renditions.len());
    write_multivariant_header(&mut out, presentation, format, &videos);
    let mut groups = Vec::new();
    let (families, extras) = split_off_supplementary_families(presentation, &families);
    for family in families {
        for step in 0..family.count_bitrate_steps() {
            let alone = videos.is_empty() && family.programmes.len() == 1 && extras.is_empty();
            groups.push(write_audio_group(
                &mut out,
                presentation,
                packing,
                (family, extras),
                step,
                !alone,
            ));
        }
    }
    let text = write_text_group(&mut out, presentation, format);
    let mut list_variant = |rendition: &Rendition, group: Option<&AudioGroup>| {
        write_variant(&mut out, presentation, packing, (rendition, group), &text);
    };
    match (videos.is_empty(), groups.is_empty()) {
        (false, false) => {
            let pairs = groups
                .iter()
                .flat_map(|g| videos.iter().map(move |v| (v, g)));
            pairs.for_each(|(v, g)| list_variant(v, Some(g)));
        }
        (false, true) => {
            videos.iter().for_each(|v| list_variant(v, None));
        }
        (true, _) => {
            groups
                .iter()
                .for_each(|g| list_variant(g.default_rendition, Some(g)));
        }
    }
    if format == SegmentFormat::Cmaf && !encrypted {
        videos
            .iter()
            .for_each(|video| write_iframe_variant(&mut out, presentation, video));
    }
    Some(out)
}

/// Writes the tags that precede the renditions.
fn write_multivariant_header(
    out: &mut String,
    presentation: &Presentation,
    format: SegmentFormat,
    videos: &[&Rendition],
) {
    let version = match videos.iter().any(|video| is_stereo(presentation, video)) {
        true => VERSION_OF_REQUIREMENTS,
        false => playlist_version(format, true),
    };
    let _ = write!(out, "#EXTM3U\n#EXT-X-VERSION:{version}\n",);
    if videos.iter().all(|video| !video.has_leading_pictures) {
        out.push_str(INDEPENDENT_SEGMENTS);
    }
    write_ext_x_start(out, presentation, videos);
    write_session_keys(out, presentation);
}

/// Writes `EXT-X-START` (RFC 8216, 4.3.5.2) if the first video rendition contains pictures that the
/// edit list hides. The media playlists start with these pictures, because decoding needs them
/// after a trim inside a GOP. The tag makes players start after these pictures.
fn write_ext_x_start(out: &mut String, presentation: &Presentation, videos: &[&Rendition]) {
    let hidden = videos.first().map(|video| presentation.hidden_lead(video));
    if let Some(hidden) = hidden.filter(|lead| *lead > Time::ZERO) {
        // Rounds up, so that no player shows the last hidden picture.
        let micros = hidden.ceil_to(1_000_000);
        let (whole, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(
            out,
            "#EXT-X-START:TIME-OFFSET={whole}.{fraction:06},PRECISE=YES"
        );
    }
}

/// Writes the `EXT-X-SESSION-KEY` lines of a title with Common Encryption, without duplicates. With
/// these lines, players can request licenses early.
fn write_session_keys(out: &mut String, presentation: &Presentation) {
    let tracks = presentation
        .protection
        .iter()
        .flat_map(|title| &title.tracks);
    let lines = tracks.flatten().flat_map(|track| &track.hls_session_keys);
    let mut written: Vec<&str> = Vec::new();
    for line in lines {
        if !written.contains(&line.as_str()) {
            out.push_str(line);
            written.push(line);
        }
    }
}

/// Separates the families without audio for all viewers from the other families. If there are no
/// other families, separates nothing. The separated families form no groups of their own, because a
/// player that chose such a group would have no audio for all viewers.
fn split_off_supplementary_families<'f, 'a>(
    presentation: &Presentation,
    families: &'f [AudioFamily<'a>],
) -> (&'f [AudioFamily<'a>], &'f [AudioFamily<'a>]) {
    let count = families.partition_point(|family| family.has_audio_for_all_viewers(presentation));
    families.split_at(if count == 0 { families.len() } else { count })
}

/// Creates an audio group with the programmes of `family` and of `extras`. If `listed` is set,
/// writes the `EXT-X-MEDIA` tags of the group.
fn write_audio_group<'a>(
    out: &mut String,
    presentation: &Presentation,
    packing: SegmentPacking,
    (family, extras): (&AudioFamily<'a>, &[AudioFamily<'a>]),
    step: usize,
    listed: bool,
) -> AudioGroup<'a> {
    let mut id = format!(
        "audio-{}-{}",
        family.codec_string, family.format.channel_count
    );
    if family.format.hls_channels.contains("JOC") {
        id.push_str("-joc");
    }
    if step > 0 {
        let _ = write!(id, "-{}", step + 1);
    }
    let mut names: Vec<String> = Vec::new();
    let mut total = Bandwidth::default();
    let mut codec_strings: Vec<&str> = Vec::new();
    let mut selected: Vec<AutoselectKey> = Vec::new();
    let families = std::iter::once(family).chain(extras);
    let members = families.flat_map(|member| member.programmes.iter().map(move |p| (member, p)));
    for (n, (member, programme)) in members.enumerate() {
        let rendition = rendition_of_step(programme, step);
        if !codec_strings.contains(&member.codec_string) {
            codec_strings.push(member.codec_string);
        }
        let measured = bandwidth_with_packing(presentation, rendition, packing);
        total.peak = total.peak.max(measured.peak);
        total.average = total.average.max(measured.average);
        let name = unique_name(presentation, rendition, &names);
        if listed {
            let track = presentation.track(rendition);
            let _ = write!(
                out,
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{}\",NAME=\"{name}\"",
                QuotedString(&id)
            );
            if let Some(tag) = language_tag::shortest_tag(&track.language) {
                let _ = write!(out, ",LANGUAGE=\"{tag}\"");
            }
            let is_default = n == 0 && may_be_default(presentation, track);
            let key = AutoselectKey::from_track(track);
            let is_selectable = (is_for_all_viewers(track) || is_accessibility_audio(track))
                && !selected.contains(&key);
            let is_selected = is_default || (programme.first_of_language && is_selectable);
            selected.extend(is_selected.then_some(key));
            let _ = write!(
                out,
                ",DEFAULT={},AUTOSELECT={},CHANNELS=\"{}\"",
                yes_or_no(is_default),
                yes_or_no(is_selected),
                QuotedString(&member.format.hls_channels),
            );
            let characteristics: Vec<&str> = media_characteristics(track).collect();
            if !characteristics.is_empty() {
                let _ = write!(out, ",CHARACTERISTICS=\"{}\"", characteristics.join(","));
            }
            let _ = writeln!(
                out,
                ",STABLE-RENDITION-ID=\"{}\",URI=\"{}\"",
                rendition.name,
                url::playlist_url(packing.format, presentation, rendition),
            );
        }
        names.push(name);
    }
    AudioGroup {
        id,
        codec_strings,
        bandwidth: total,
        default_rendition: rendition_of_step(&family.programmes[0], step),
        is_listed: listed,
    }
}

/// Returns the rendition of a programme at this bitrate step. Step 0 is the highest bitrate. A
/// programme with fewer bitrates uses its lowest bitrate.
fn rendition_of_step<'a>(programme: &AudioProgramme<'a>, step: usize) -> &'a Rendition {
    programme.renditions[step.min(programme.renditions.len() - 1)]
}

fn is_stereo(presentation: &Presentation, rendition: &Rendition) -> bool {
    let video = presentation.track(rendition).codec.video();
    video.is_some_and(|video| video.is_stereo)
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

/// Returns the name that players show: the name of the track, or its language, or `Audio`. If the
/// group already contains the name, a number is added.
fn unique_name(presentation: &Presentation, rendition: &Rendition, taken: &[String]) -> String {
    let track = presentation.track(rendition);
    let tag = language_tag::shortest_tag(&track.language);
    let name = match (&track.name, &tag) {
        (Some(name), _) if !name.trim().is_empty() => QuotedString(name.trim()).to_string(),
        (_, Some(tag)) => append_purpose(language_tag::english_name(tag).unwrap_or(tag), track),
        _ => append_purpose("Audio", track),
    };
    let numbered = (2..).map(|n| format!("{name} {n}"));
    let mut free = std::iter::once(name.clone()).chain(numbered);
    free.find(|name| !taken.contains(name)).unwrap_or_default()
}

fn append_purpose(name: &str, track: &Track) -> String {
    match purpose_name(track) {
        Some(purpose) => format!("{name} ({purpose})"),
        None => name.to_owned(),
    }
}

fn write_variant(
    out: &mut String,
    presentation: &Presentation,
    packing: SegmentPacking,
    (rendition, group): (&Rendition, Option<&AudioGroup>),
    text: &TextVariantAttributes,
) {
    let codec = &presentation.track(rendition).codec;
    let is_video = codec.video().is_some();
    let own = bandwidth_with_packing(presentation, rendition, packing);
    let with = group.map_or(Bandwidth::default(), |group| group.bandwidth);
    let (peak, average) = if is_video {
        (own.peak + with.peak, own.average + with.average)
    } else {
        (with.peak, with.average)
    };
    let _ = write!(
        out,
        "#EXT-X-STREAM-INF:BANDWIDTH={peak},AVERAGE-BANDWIDTH={average},CODECS=\"{}",
        QuotedString(&codec.codec_string)
    );
    let of_group = group.iter().flat_map(|group| &group.codec_strings);
    for codec_string in of_group.filter(|other| **other != codec.codec_string) {
        let _ = write!(out, ",{}", QuotedString(codec_string));
    }
    if let Some(codec) = text.codec {
        let _ = write!(out, ",{codec}");
    }
    out.push('"');
    let video_only = if is_video { own } else { Bandwidth::default() };
    let _ = write!(
        out,
        ",STABLE-VARIANT-ID=\"{}\",SCORE={}",
        rendition.name,
        format_score(presentation, rendition, video_only, with)
    );
    write_video_attributes(out, presentation, rendition, true);
    write_protection_attributes(out, presentation, rendition);
    if let Some(group) = group.filter(|group| group.is_listed) {
        let _ = write!(out, ",AUDIO=\"{}\"", QuotedString(&group.id));
    }
    out.push_str(&text.attributes);
    // Without `CLOSED-CAPTIONS=NONE`, players look for captions in the video (RFC 8216, 4.3.4.2).
    let has_captions = !presentation.text.caption_channels().is_empty();
    if is_video && presentation.manifest_rules.has_no_captions && !has_captions {
        out.push_str(",CLOSED-CAPTIONS=NONE");
    }
    let _ = writeln!(
        out,
        "\n{}",
        url::playlist_url(packing.format, presentation, rendition)
    );
}

/// Writes the attributes that restrict a variant to some devices, if the key of its video requires
/// such attributes.
fn write_protection_attributes(
    out: &mut String,
    presentation: &Presentation,
    rendition: &Rendition,
) {
    if let Some(signaling) = presentation.track_signaling(rendition) {
        signaling.write_variant_attributes(out);
    }
}

fn write_video_attributes(
    out: &mut String,
    presentation: &Presentation,
    rendition: &Rendition,
    moving: bool,
) {
    let track = presentation.track(rendition);
    let Some(video) = track.codec.video() else {
        return;
    };
    if let Some(supplemental) = &track.codec.supplemental_codecs {
        let _ = write!(
            out,
            ",SUPPLEMENTAL-CODECS=\"{}\"",
            QuotedString(supplemental)
        );
    }
    let (width, height) = track_facts::display_size(video);
    let _ = write!(out, ",RESOLUTION={width}x{height}");
    if moving {
        let (frames, seconds) = rendition.frame_rate;
        let _ = write!(out, ",FRAME-RATE={}", format_quotient(frames, seconds));
    }
    if let Some(range) = track_facts::video_range(video.color) {
        let _ = write!(out, ",VIDEO-RANGE={range}");
    }
    if video.is_stereo {
        out.push_str(",REQ-VIDEO-LAYOUT=\"CH-STEREO\"");
    }
}

/// Formats `a / b`, rounded to three decimals.
fn format_quotient(a: u64, b: u64) -> String {
    let b = u128::from(b.max(1));
    let thousandths = (u128::from(a) * 1000 + b / 2) / b;
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

fn write_iframe_variant(out: &mut String, presentation: &Presentation, rendition: &Rendition) {
    let measured = presentation.measure_key_frame_bandwidth(rendition);
    let codec = &presentation.track(rendition).codec;
    let _ = write!(
        out,
        "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
        measured.peak,
        measured.average,
        QuotedString(&codec.codec_string)
    );
    let _ = write!(
        out,
        ",STABLE-VARIANT-ID=\"{}.keyframes\",SCORE={}",
        rendition.name,
        format_score(
            presentation,
            rendition,
            rendition.bandwidth,
            Bandwidth::default()
        )
    );
    write_video_attributes(out, presentation, rendition, false);
    write_protection_attributes(out, presentation, rendition);
    let _ = writeln!(
        out,
        ",URI=\"{}\"",
        url::iframe_playlist_url(presentation, rendition)
    );
}
