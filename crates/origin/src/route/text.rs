//! URLs of text resources, such as `T/t-<version>/text=en/…`.

use super::{
    HlsContainer, ManifestKind, RequestedResource, RouteError, parse_decimal, parse_store_key,
    parse_version,
};
use std::fmt;
use store::Key;

/// Name of a text set, such as `t-9f86d081884c7d65`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextSetId(pub u64);

/// The URL of a text resource other than a playlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextUrl {
    /// The title.
    pub title: Key,
    /// Version of the title's text and of its segments.
    pub version: TextSetId,
    /// Name of the rendition.
    pub rendition: String,
    /// Resource within the rendition.
    pub part: TextResource,
}

/// Playlists of a text rendition, which differ in the format of their segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextPlaylist {
    /// WebVTT segments whose timestamps match those of video and audio in this container.
    Vtt(HlsContainer),
    /// IMSC segments in CMAF.
    Imsc,
}

/// CMAF text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmafTextFormat {
    /// WebVTT.
    Wvtt,
    /// IMSC.
    Imsc,
}

/// Resources of a text rendition. Times are the start times of segments, in ticks of the text's
/// timescale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextResource {
    /// The CMAF header.
    Init(CmafTextFormat),
    /// The CMAF segment that starts at this time.
    Cmaf(u64, CmafTextFormat),
    /// The CMAF segment with this number. The first number is 1.
    Number(u32, CmafTextFormat),
    /// The WebVTT segment that starts at this time. Its timestamps match those of video and audio
    /// in this container.
    Vtt(u64, HlsContainer),
    /// All cues as one WebVTT file.
    Whole,
}

/// Parses the URL of a text resource. Returns `None` if the folder is not a text folder.
pub(super) fn parse_text_url(
    folder: &str,
    name: &str,
) -> Result<Option<RequestedResource>, RouteError> {
    let (folder, is_numbered) = match folder.strip_suffix("/n") {
        Some(folder) => (folder, true),
        None => (folder, false),
    };
    let mut up = folder.rsplitn(3, '/');
    let rendition = up.next().filter(|name| name.starts_with("text="));
    let version = up.next().and_then(TextSetId::parse_text_set_name);
    let (Some(rendition), Some(version)) = (rendition, version) else {
        return Ok(None);
    };
    let title = parse_store_key(up.next().unwrap_or_default())?;
    let rendition = rendition.to_owned();
    let playlist = match name {
        _ if is_numbered => None,
        "hls.m3u8" => Some(TextPlaylist::Vtt(HlsContainer::Cmaf)),
        "ts.m3u8" => Some(TextPlaylist::Vtt(HlsContainer::Ts)),
        "imsc.m3u8" => Some(TextPlaylist::Imsc),
        _ => None,
    };
    Ok(Some(match playlist {
        Some(playlist) => RequestedResource::Manifest {
            title,
            manifest: ManifestKind::Text(version, playlist, rendition),
            file: None,
        },
        None => RequestedResource::Text(TextUrl {
            title,
            version,
            rendition,
            // A text set contains only generated resources, so a file with another name cannot
            // exist.
            part: parse_text_resource(name, is_numbered).ok_or(RouteError::NotFound)?,
        }),
    }))
}

fn parse_text_resource(name: &str, is_numbered: bool) -> Option<TextResource> {
    let (stem, form) = match name.strip_suffix(".imsc.m4s") {
        Some(stem) => (Some(stem), CmafTextFormat::Imsc),
        None => (name.strip_suffix(".m4s"), CmafTextFormat::Wvtt),
    };
    let cmaf = stem.and_then(parse_decimal);
    if is_numbered {
        let number = u32::try_from(cmaf?).ok()?;
        return (number > 0).then_some(TextResource::Number(number, form));
    }
    match name {
        "init.mp4" => return Some(TextResource::Init(CmafTextFormat::Wvtt)),
        "init.imsc.mp4" => return Some(TextResource::Init(CmafTextFormat::Imsc)),
        "all.vtt" => return Some(TextResource::Whole),
        _ => {}
    }
    let time = |suffix| name.strip_suffix(suffix).and_then(parse_decimal);
    cmaf.map(|time| TextResource::Cmaf(time, form))
        .or_else(|| time(".ts.vtt").map(|time| TextResource::Vtt(time, HlsContainer::Ts)))
        .or_else(|| time(".vtt").map(|time| TextResource::Vtt(time, HlsContainer::Cmaf)))
}

impl TextSetId {
    fn parse_text_set_name(name: &str) -> Option<TextSetId> {
        name.strip_prefix("t-")
            .and_then(parse_version)
            .map(TextSetId)
    }
}

impl fmt::Display for TextSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t-{:016x}", self.0)
    }
}

impl fmt::Display for TextPlaylist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextPlaylist::Vtt(HlsContainer::Cmaf) => "hls.m3u8",
            TextPlaylist::Vtt(HlsContainer::Ts) => "ts.m3u8",
            TextPlaylist::Imsc => "imsc.m3u8",
        })
    }
}

impl fmt::Display for CmafTextFormat {
    /// Displays the part of a file name that identifies the format, such as `imsc.` in
    /// `1.imsc.m4s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CmafTextFormat::Wvtt => "",
            CmafTextFormat::Imsc => "imsc.",
        })
    }
}

impl fmt::Display for TextResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextResource::Init(form) => write!(f, "init.{form}mp4"),
            TextResource::Cmaf(time, form) => write!(f, "{time}.{form}m4s"),
            TextResource::Number(number, form) => write!(f, "n/{number}.{form}m4s"),
            TextResource::Vtt(time, HlsContainer::Cmaf) => write!(f, "{time}.vtt"),
            TextResource::Vtt(time, HlsContainer::Ts) => write!(f, "{time}.ts.vtt"),
            TextResource::Whole => f.write_str("all.vtt"),
        }
    }
}
