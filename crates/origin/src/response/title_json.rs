//! The JSON description of a title, for the player page and for developers.

use crate::route::{LICENSE_NAME, TextResource, TextSetId};
use crate::title::left_out::LeftOutPart;
use crate::title::opened_title::Title;
use media::codec::TrackFormat;
use media::manifest::hls::encrypted_len;
use media::presentation::{Presentation, Rendition};
use net::Error;
use serde::Serialize;
use std::sync::Arc;

/// The description of a title. URLs are relative to the title's path.
#[derive(Serialize)]
struct TitleDescription<'a> {
    /// Path of the title in the library.
    path: &'a str,
    /// Display name.
    name: &'a str,
    /// `file`, `folder` or `index`.
    kind: &'static str,
    /// Time from the film's start to the end of its longest rendition.
    duration_ms: i64,
    /// Start of the film on the timeline of the segments.
    zero_ms: i64,
    hls: &'static str,
    /// `None` if the segments are encrypted with AES-128, which DASH does not support.
    #[serde(skip_serializing_if = "Option::is_none")]
    dash: Option<&'static str>,
    /// Segment encryption: `aes-128`, `cbcs` or `cenc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption: Option<&'static str>,
    /// URL of the ClearKey license, if this server provides keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<&'static str>,
    /// Names of the DRM systems that the manifests signal. A system without a known name is listed
    /// by its UUID.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    systems: Vec<String>,
    /// Name of the segment set in URLs.
    set: String,
    /// Name of the segment set of the MPD, if it differs from `set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dash_set: Option<String>,
    /// Target segment length.
    segment_ms: u32,
    files: Vec<FileDescription<'a>>,
    renditions: Vec<RenditionDescription<'a>>,
    /// Tracks and files that are not served.
    left_out: &'a [LeftOutPart],
    /// Subtitles and captions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<TextDescription>,
    /// Notes about possible playback problems.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FileDescription<'a> {
    path: &'a str,
    bytes: u64,
    /// Hash of the file's metadata.
    fingerprint: String,
}

#[derive(Serialize)]
struct RenditionDescription<'a> {
    name: &'a str,
    kind: &'static str,
    /// Index into `files`.
    file: usize,
    /// Players can switch seamlessly between renditions of the same group.
    group: usize,
    mime: &'static str,
    codecs: &'a str,
    language: &'a str,
    label: Option<&'a str>,
    width: Option<u32>,
    height: Option<u32>,
    frame_rate: Option<f64>,
    sample_rate: Option<u32>,
    channels: Option<&'a str>,
    /// Peak bit rate over all segments, in bits per second.
    bandwidth: u64,
    /// Average bit rate, in bits per second.
    average_bandwidth: u64,
    /// Timescale of the segment times, in ticks per second.
    timescale: u32,
    init: String,
    /// URL template for segments. `{t}` stands for the `t` of a segment.
    media: String,
    segments: Vec<SegmentDescription>,
}

#[derive(Serialize)]
struct TextDescription {
    /// `subtitles`, `captions`, `forced` or `easy-to-read`.
    kind: &'static str,
    /// Language as a BCP 47 tag.
    language: Option<String>,
    /// Display name for viewers.
    label: String,
    /// Whether players should show this text even if the viewer has not selected any text.
    default: bool,
    /// URL of a WebVTT file with all cues. Cue times are relative to the start of the film.
    url: String,
}

#[derive(Serialize)]
struct SegmentDescription {
    /// Earliest presentation time in ticks, which is also the segment's name.
    t: u64,
    /// Duration in ticks.
    duration: u64,
    /// Size of the CMAF segment, in bytes.
    bytes: u64,
}

/// Writes the description of a title.
pub(crate) fn write_title_json(title: &Title) -> Result<String, Error> {
    let same = Arc::ptr_eq(&title.hls, &title.dash);
    let p = &*title.hls;
    let set = p.segment_folder_name();
    let description = TitleDescription {
        path: title.key.as_str(),
        name: title.display_name(),
        kind: title.path_kind(),
        duration_ms: p.duration.round_to(1000),
        zero_ms: p.presentation_time_offset.round_to(1000),
        hls: ".m3u8",
        dash: title.encryption.is_none().then_some(".mpd"),
        encryption: match (&title.encryption, &title.drm) {
            (Some(_), _) => Some("aes-128"),
            (None, drm) => {
                served_source_encryption_scheme(p).or(drm.as_ref().map(|drm| drm.scheme.name()))
            }
        },
        systems: list_drm_systems(p),
        license: title
            .drm
            .as_ref()
            .is_some_and(|drm| !drm.served_keys().is_empty())
            .then_some(LICENSE_NAME),
        dash_set: (!same).then(|| title.dash.segment_folder_name()),
        segment_ms: p.segment_duration_ms,
        files: describe_files(title),
        renditions: p
            .renditions
            .iter()
            .map(|r| describe_rendition(title, r, &set))
            .collect(),
        left_out: &title.left_out,
        texts: describe_texts(p),
        notes: collect_notes(title),
        set,
    };
    let text = serde_json::to_string(&description);
    text.map_err(|e| Error::new_internal_error(format_args!("cannot write the description: {e}")))
}

fn describe_files(title: &Title) -> Vec<FileDescription<'_>> {
    let both = title.files.iter().zip(&title.hls.files);
    both.map(|(file, index)| FileDescription {
        path: file.location.key.as_str(),
        bytes: file.object.len(),
        fingerprint: format!("{:016x}", index.fingerprint),
    })
    .collect()
}

fn describe_texts(p: &Presentation) -> Vec<TextDescription> {
    let version = TextSetId(p.text_version());
    let texts = p.text.renditions();
    texts
        .map(|(name, text)| TextDescription {
            kind: text.kind.name(),
            language: text.language_tag(),
            label: text.display_name(),
            default: text.is_default,
            url: format!("{version}/{name}/{}", TextResource::Whole),
        })
        .collect()
}

fn collect_notes(title: &Title) -> Vec<String> {
    let both = title.files.iter().zip(&title.hls.files);
    both.flat_map(|(file, index)| {
        let name = file.location.key.name();
        index
            .notes
            .iter()
            .map(move |note| format!("{name}, track {}: {}", note.track_id, note.message))
    })
    .collect()
}

fn describe_rendition<'a>(
    title: &'a Title,
    r: &'a Rendition,
    set: &str,
) -> RenditionDescription<'a> {
    let p = &*title.hls;
    let track = p.track(r);
    let (video, audio) = (track.codec.video(), track.codec.audio());
    let is_video = matches!(track.codec.format, TrackFormat::Video(_));
    RenditionDescription {
        name: &r.name,
        kind: if is_video { "video" } else { "audio" },
        file: r.file_index,
        group: r.switching_group,
        mime: if is_video { "video/mp4" } else { "audio/mp4" },
        codecs: &track.codec.codec_string,
        language: &track.language,
        label: track.name.as_deref(),
        width: video.map(|v| v.width),
        height: video.map(|v| v.height),
        frame_rate: is_video.then(|| frame_rate(p, r)),
        sample_rate: audio.map(|a| a.sample_rate),
        channels: audio.map(|a| a.hls_channels.as_str()),
        bandwidth: r.bandwidth.peak,
        average_bandwidth: r.bandwidth.average,
        timescale: track.timescale,
        init: format!("{set}/{}/init.mp4", r.name),
        media: format!("{set}/{}/{{t}}.m4s", r.name),
        segments: (0..r.segment_count())
            .map(|n| SegmentDescription {
                t: p.segment_start(r, n),
                duration: p.segment_duration_ticks(r, n),
                bytes: match title.encryption {
                    Some(_) => encrypted_len(p.segment_len(r, n)),
                    None => p.segment_len(r, n),
                },
            })
            .collect(),
    }
}

/// Returns the average frame rate, rounded to three decimals.
fn frame_rate(p: &Presentation, r: &Rendition) -> f64 {
    let track = p.track(r);
    let rate = f64::from(track.samples.len()) / track.duration().as_seconds_f64();
    (rate * 1000.0).round() / 1000.0
}

/// Returns the DRM systems of all renditions, without duplicates.
fn list_drm_systems(presentation: &Presentation) -> Vec<String> {
    let mut systems = Vec::new();
    let signaling = presentation.renditions.iter();
    let signaling = signaling.filter_map(|rendition| presentation.track_signaling(rendition));
    for signal in signaling.flat_map(|track| &track.systems) {
        let name = signal.system.name_or_uuid();
        if !systems.contains(&name) {
            systems.push(name);
        }
    }
    systems
}

/// Returns the encryption scheme of the source, if the title is served with the source's
/// encryption.
fn served_source_encryption_scheme(presentation: &Presentation) -> Option<&'static str> {
    let mut renditions = presentation.renditions.iter();
    let source = renditions.find_map(|r| presentation.served_source_protection(r))?;
    Some(source.entry.protection.scheme.name())
}
