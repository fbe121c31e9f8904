//! The multivariant playlist: what there is to choose from.

use super::{Packing, bandwidth, extension, version};
use crate::manifest::audio::{Family, Voice, families};
use crate::manifest::text::Quoted;
use crate::manifest::{Format, facts, language, url};
use crate::presentation::{Bandwidth, Presentation, Rendition};
use std::fmt::Write;

/// One `GROUP-ID`: a rendition of each voice of a family.
struct Group<'a> {
    id: String,
    codec: &'a str,
    /// Largest peak and largest average of its renditions.
    bandwidth: Bandwidth,
    default: &'a Rendition,
    /// Whether it has to be told in `EXT-X-MEDIA`.
    listed: bool,
}

/// The multivariant playlist; `None` if the format cannot carry the title (none of its video, or
/// of its audio where that is all there is).
///
/// Each video rendition is listed with each audio group: first all with the first group, in the
/// presentation's order, so that the start variant comes first. Where segments are `encrypted` (with
/// AES-128, as media playlists say), there are no I-frame playlists.
pub fn multivariant(
    presentation: &Presentation,
    format: Format,
    encrypted: bool,
) -> Option<String> {
    let packing = Packing { format, encrypted };
    let carried = |r: &&Rendition| extension(format, &presentation.track(r).codec).is_some();
    let videos: Vec<&Rendition> = presentation.videos().filter(carried).collect();
    let families = families(presentation, presentation.audios().filter(carried));
    // A film without its pictures would not be the film.
    let all_lost = videos.is_empty() && presentation.videos().next().is_some();
    if all_lost || (videos.is_empty() && families.is_empty()) {
        return None;
    }
    let mut out = String::with_capacity(1024 + 512 * presentation.renditions.len());
    let _ = write!(
        out,
        "#EXTM3U\n#EXT-X-VERSION:{}\n#EXT-X-INDEPENDENT-SEGMENTS\n",
        version(format, true)
    );
    let mut groups = Vec::new();
    for family in &families {
        for step in 0..family.steps() {
            let alone = videos.is_empty() && family.voices.len() == 1;
            groups.push(group(&mut out, presentation, packing, family, step, !alone));
        }
    }
    match (videos.is_empty(), groups.is_empty()) {
        (false, false) => {
            let pairs = groups
                .iter()
                .flat_map(|g| videos.iter().map(move |v| (v, g)));
            pairs.for_each(|(v, g)| variant(&mut out, presentation, packing, v, Some(g)));
        }
        (false, true) => {
            videos
                .iter()
                .for_each(|v| variant(&mut out, presentation, packing, v, None));
        }
        (true, _) => {
            groups
                .iter()
                .for_each(|g| variant(&mut out, presentation, packing, g.default, Some(g)));
        }
    }
    if format == Format::Cmaf && !encrypted {
        videos
            .iter()
            .for_each(|video| iframe_variant(&mut out, presentation, video));
    }
    Some(out)
}

/// Writes the `EXT-X-MEDIA` tags of a group, if it is `listed`.
fn group<'a>(
    out: &mut String,
    presentation: &Presentation,
    packing: Packing,
    family: &Family<'a>,
    step: usize,
    listed: bool,
) -> Group<'a> {
    let mut id = format!("audio-{}-{}", family.codec, family.audio.channels);
    if family.audio.hls_channels.contains("JOC") {
        id.push_str("-joc");
    }
    if step > 0 {
        let _ = write!(id, "-{}", step + 1);
    }
    let default = family.default_voice(presentation);
    let mut names: Vec<String> = Vec::new();
    let mut total = Bandwidth::default();
    for (n, voice) in family.voices.iter().enumerate() {
        let rendition = of_step(voice, step);
        let measured = bandwidth(presentation, rendition, packing);
        total.peak = total.peak.max(measured.peak);
        total.average = total.average.max(measured.average);
        let name = unique_name(presentation, rendition, &names);
        if listed {
            let track = presentation.track(rendition);
            let _ = write!(
                out,
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{}\",NAME=\"{name}\"",
                Quoted(&id)
            );
            if let Some(tag) = language::tag(&track.language) {
                let _ = write!(out, ",LANGUAGE=\"{tag}\"");
            }
            let is_default = n == default;
            let _ = writeln!(
                out,
                ",DEFAULT={},AUTOSELECT={},CHANNELS=\"{}\",URI=\"{}\"",
                yes(is_default),
                yes(is_default || voice.first_of_language),
                Quoted(&family.audio.hls_channels),
                url::playlist(packing.format, presentation, rendition),
            );
        }
        names.push(name);
    }
    Group {
        id,
        codec: family.codec,
        bandwidth: total,
        default: of_step(&family.voices[default], step),
        listed,
    }
}

/// The voice's rendition in the group of this step; voices with fewer bitrates give their last.
fn of_step<'a>(voice: &Voice<'a>, step: usize) -> &'a Rendition {
    voice.renditions[step.min(voice.renditions.len() - 1)]
}

fn yes(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

/// What viewers choose by: the track's own name, else its language's, else `Audio`; numbered
/// where the group already has it.
fn unique_name(presentation: &Presentation, rendition: &Rendition, taken: &[String]) -> String {
    let track = presentation.track(rendition);
    let tag = language::tag(&track.language);
    let name = match (&track.name, &tag) {
        (Some(name), _) if !name.trim().is_empty() => Quoted(name.trim()).to_string(),
        (_, Some(tag)) => language::english_name(tag).unwrap_or(tag).to_owned(),
        _ => "Audio".to_owned(),
    };
    let numbered = (2..).map(|n| format!("{name} {n}"));
    let mut free = std::iter::once(name.clone()).chain(numbered);
    free.find(|name| !taken.contains(name)).unwrap_or_default()
}

fn variant(
    out: &mut String,
    presentation: &Presentation,
    packing: Packing,
    rendition: &Rendition,
    group: Option<&Group>,
) {
    let codec = &presentation.track(rendition).codec;
    let is_video = codec.video().is_some();
    let own = bandwidth(presentation, rendition, packing);
    let with = group.map_or(Bandwidth::default(), |group| group.bandwidth);
    let (peak, average) = if is_video {
        (own.peak + with.peak, own.average + with.average)
    } else {
        (with.peak, with.average)
    };
    let _ = write!(
        out,
        "#EXT-X-STREAM-INF:BANDWIDTH={peak},AVERAGE-BANDWIDTH={average},CODECS=\"{}",
        Quoted(&codec.string)
    );
    if let Some(group) = group.filter(|_| is_video) {
        let _ = write!(out, ",{}", Quoted(group.codec));
    }
    out.push('"');
    video_attributes(out, presentation, rendition, true);
    if let Some(group) = group.filter(|group| group.listed) {
        let _ = write!(out, ",AUDIO=\"{}\"", Quoted(&group.id));
    }
    if is_video {
        out.push_str(",CLOSED-CAPTIONS=NONE");
    }
    let _ = writeln!(
        out,
        "\n{}",
        url::playlist(packing.format, presentation, rendition)
    );
}

fn video_attributes(
    out: &mut String,
    presentation: &Presentation,
    rendition: &Rendition,
    moving: bool,
) {
    let track = presentation.track(rendition);
    let Some(video) = track.codec.video() else {
        return;
    };
    if let Some(supplemental) = &track.codec.supplemental {
        let _ = write!(out, ",SUPPLEMENTAL-CODECS=\"{}\"", Quoted(supplemental));
    }
    let (width, height) = facts::display_size(video);
    let _ = write!(out, ",RESOLUTION={width}x{height}");
    if moving {
        let (frames, seconds) = facts::frame_rate(track);
        let _ = write!(out, ",FRAME-RATE={}", decimal(frames, seconds));
    }
    if let Some(range) = facts::video_range(video.color) {
        let _ = write!(out, ",VIDEO-RANGE={range}");
    }
}

/// `a / b` with three decimals, rounded.
fn decimal(a: u64, b: u64) -> String {
    let b = u128::from(b.max(1));
    let thousandths = (u128::from(a) * 1000 + b / 2) / b;
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

fn iframe_variant(out: &mut String, presentation: &Presentation, rendition: &Rendition) {
    let measured = presentation.keys_bandwidth(rendition);
    let codec = &presentation.track(rendition).codec;
    let _ = write!(
        out,
        "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
        measured.peak,
        measured.average,
        Quoted(&codec.string)
    );
    video_attributes(out, presentation, rendition, false);
    let _ = writeln!(out, ",URI=\"{}\"", url::iframes(presentation, rendition));
}
