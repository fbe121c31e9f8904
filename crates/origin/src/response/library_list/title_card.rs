//! The summary of a title in the list of titles.

use super::remote_listing::ListedTitle;
use crate::title::file_names;
use crate::title::opened_title::Title;
use crate::title::several_films::are_several_films;
use media::presentation::{Presentation, Rendition};
use net::Error;
use serde::Serialize;
use store::Key;

/// Summary of a title.
#[derive(Serialize)]
pub(super) struct TitleCard {
    path: String,
    name: String,
    /// `file`, `folder` or `index`.
    kind: &'static str,
    /// `None` if the title has not been indexed yet or cannot be played.
    duration_ms: Option<i64>,
    bytes: u64,
    video: Vec<VideoSummary>,
    audio: Vec<AudioSummary>,
    /// The reason why the title cannot be played, if any.
    pub(super) error: Option<String>,
    /// Whether the files of the title are several films instead of one film.
    #[serde(skip)]
    pub(super) several: bool,
    /// Whether the next scan builds the card again even if the title's files have not changed.
    #[serde(skip)]
    pub(super) is_temporary: bool,
}

#[derive(Serialize)]
struct VideoSummary {
    width: u32,
    height: u32,
    codecs: String,
    bitrate: u64,
}

#[derive(Serialize)]
struct AudioSummary {
    language: String,
    codecs: String,
    channels: String,
}

impl TitleCard {
    pub(super) fn from_title(title: &Title) -> TitleCard {
        let p = &*title.hls;
        TitleCard {
            path: title.key.as_str().to_owned(),
            name: title.display_name().to_owned(),
            kind: title.path_kind(),
            duration_ms: Some(p.duration.round_to(1000)),
            bytes: title.files.iter().map(|file| file.object.len()).sum(),
            video: p
                .video_renditions()
                .filter_map(|r| VideoSummary::from_rendition(p, r))
                .collect(),
            audio: p
                .audio_renditions()
                .filter_map(|r| AudioSummary::from_rendition(p, r))
                .collect(),
            error: None,
            several: are_several_films(p),
            is_temporary: false,
        }
    }

    pub(super) fn from_listing(found: ListedTitle) -> TitleCard {
        TitleCard {
            path: found.key.as_str().to_owned(),
            name: file_names::display_name_of(&found.key).to_owned(),
            kind: found.kind,
            duration_ms: None,
            bytes: found.bytes,
            video: Vec::new(),
            audio: Vec::new(),
            error: None,
            several: false,
            is_temporary: true,
        }
    }

    pub(super) fn from_error(key: &Key, error: &Error) -> TitleCard {
        TitleCard {
            error: Some(error.context.clone()),
            is_temporary: error.retry,
            ..TitleCard::from_path_only(key)
        }
    }

    pub(super) fn from_path_only(key: &Key) -> TitleCard {
        TitleCard {
            path: key.as_str().to_owned(),
            name: file_names::display_name_of(key).to_owned(),
            kind: if file_names::is_media(key.name()) {
                "file"
            } else {
                "folder"
            },
            duration_ms: None,
            bytes: 0,
            video: Vec::new(),
            audio: Vec::new(),
            error: None,
            several: false,
            is_temporary: true,
        }
    }
}

impl VideoSummary {
    fn from_rendition(p: &Presentation, r: &Rendition) -> Option<VideoSummary> {
        let codec = &p.track(r).codec;
        let video = codec.video()?;
        Some(VideoSummary {
            width: video.width,
            height: video.height,
            codecs: codec.codec_string.clone(),
            bitrate: r.bandwidth.average,
        })
    }
}

impl AudioSummary {
    fn from_rendition(p: &Presentation, r: &Rendition) -> Option<AudioSummary> {
        let track = p.track(r);
        let audio = track.codec.audio()?;
        Some(AudioSummary {
            language: track.language.clone(),
            codecs: track.codec.codec_string.clone(),
            channels: audio.hls_channels.clone(),
        })
    }
}
