//! What we know about a title, as JSON: for the page, and for whoever wonders.

use crate::title::Title;
use media::codec::Media;
use media::manifest::hls::encrypted_len;
use media::presentation::{Presentation, Rendition};
use net::Error;
use serde::Serialize;
use std::sync::Arc;

/// A title. URLs are relative to it.
#[derive(Serialize)]
struct Description<'a> {
    /// Its path in the library.
    path: &'a str,
    /// What people may call it.
    name: &'a str,
    /// `file` or `folder`.
    kind: &'static str,
    /// From the film's time zero to the end of its longest rendition.
    duration_ms: i64,
    /// Where the film's time zero lies among the segments' times.
    zero_ms: i64,
    hls: &'static str,
    /// None where it is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    dash: Option<&'static str>,
    /// How segments are encrypted: `aes-128`.
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption: Option<&'static str>,
    /// Names the set of segments in URLs.
    set: String,
    /// The set that the MPD names, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    dash_set: Option<String>,
    /// Wished length of a segment.
    segment_ms: u32,
    files: Vec<File<'a>>,
    renditions: Vec<Described<'a>>,
    /// What a player may stumble over.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    bytes: u64,
    /// Hash of the file's metadata.
    fingerprint: String,
}

#[derive(Serialize)]
struct Described<'a> {
    name: &'a str,
    kind: &'static str,
    /// Which of `files`.
    file: usize,
    /// Renditions of one group switch seamlessly.
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
    /// Largest of any segment, in bits a second.
    bandwidth: u64,
    /// All bits over all time.
    average_bandwidth: u64,
    /// Ticks a second of the segments' times.
    timescale: u32,
    init: String,
    /// With a segment's `t` in the place of `{t}`.
    media: String,
    segments: Vec<Segment>,
}

#[derive(Serialize)]
struct Segment {
    /// When its first sample is shown, and its name, in ticks.
    t: u64,
    /// In ticks.
    duration: u64,
    /// Its length in CMAF.
    bytes: u64,
}

/// The description of a title.
pub(crate) fn title(title: &Title) -> Result<String, Error> {
    let same = Arc::ptr_eq(&title.hls, &title.dash);
    let p = &*title.hls;
    let set = p.set_name();
    let description = Description {
        path: title.key.as_str(),
        name: title.name(),
        kind: title.kind(),
        duration_ms: p.duration.round_to(1000),
        zero_ms: p.zero.round_to(1000),
        hls: ".m3u8",
        dash: title.seal.is_none().then_some(".mpd"),
        encryption: title.seal.as_ref().map(|_| "aes-128"),
        dash_set: (!same).then(|| title.dash.set_name()),
        segment_ms: p.segment_ms,
        files: files(title),
        renditions: p
            .renditions
            .iter()
            .map(|r| rendition(title, r, &set))
            .collect(),
        notes: notes(title),
        set,
    };
    let text = serde_json::to_string(&description);
    text.map_err(|e| Error::internal(format_args!("the description could not be written: {e}")))
}

fn files(title: &Title) -> Vec<File<'_>> {
    let both = title.files.iter().zip(&title.hls.files);
    both.map(|(file, index)| File {
        path: file.place.key.as_str(),
        bytes: file.object.len(),
        fingerprint: format!("{:016x}", index.fingerprint),
    })
    .collect()
}

fn notes(title: &Title) -> Vec<String> {
    let both = title.files.iter().zip(&title.hls.files);
    both.flat_map(|(file, index)| {
        let name = file.place.key.name();
        index
            .notes
            .iter()
            .map(move |note| format!("{name}, track {}: {}", note.track, note.what))
    })
    .collect()
}

fn rendition<'a>(title: &'a Title, r: &'a Rendition, set: &str) -> Described<'a> {
    let p = &*title.hls;
    let track = p.track(r);
    let (video, audio) = (track.codec.video(), track.codec.audio());
    let is_video = matches!(track.codec.media, Media::Video(_));
    Described {
        name: &r.name,
        kind: if is_video { "video" } else { "audio" },
        file: r.file,
        group: r.group,
        mime: if is_video { "video/mp4" } else { "audio/mp4" },
        codecs: &track.codec.string,
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
        segments: (0..r.segments())
            .map(|n| Segment {
                t: p.segment_start(r, n),
                duration: p.segment_ticks(r, n),
                bytes: match title.seal {
                    Some(_) => encrypted_len(p.segment_len(r, n)),
                    None => p.segment_len(r, n),
                },
            })
            .collect(),
    }
}

/// Pictures a second on average, to three decimals.
fn frame_rate(p: &Presentation, r: &Rendition) -> f64 {
    let track = p.track(r);
    let rate = f64::from(track.samples.len()) / track.duration().seconds();
    (rate * 1000.0).round() / 1000.0
}
