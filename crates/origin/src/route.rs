//! Converts a URL to an [`OriginRequest`] and back. Syntax only: nothing is looked up here. Every
//! URL that Headwater prints parses into the same request.
//!
//! A URL is a title's path followed by the requested resource of the title. The second part is not
//! on disk, and is recognised from the end of the URL, so that titles may have any name.

use std::borrow::Cow;
use store::{BadKey, Key};

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginRequest {
    /// The player page.
    Page,
    /// An asset of the page, by its name below `/-/`.
    Asset(String),
    /// The list of titles as JSON.
    Library,
    /// Liveness probe.
    Health,
    /// Readiness probe.
    Ready,
    /// Metrics for Prometheus.
    Metrics,
    /// A manifest of a title.
    Manifest {
        /// The title.
        title: Key,
        /// The kind of manifest.
        manifest: ManifestKind,
        /// The path as a file key, if there may be a static file at this path. Such a file takes
        /// precedence.
        file: Option<Key>,
    },
    /// A media segment of a title.
    Segment(SegmentUrl),
    /// A segment or file of a title's text.
    Text(TextUrl),
    /// The content key of a title.
    Key(Key),
    /// The ClearKey license of a title.
    License(Key),
    /// A static file.
    File(Key),
}

/// Kinds of manifests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ManifestKind {
    /// HLS multivariant playlist.
    Multivariant(HlsContainer),
    /// HLS media playlist of a rendition, in the folder of its segments.
    Media(SegmentSet, HlsContainer, String),
    /// HLS I-frame playlist of a rendition, in the folder of its segments.
    KeyFrames(SegmentSet, String),
    /// HLS media playlist of a text rendition, in the folder of its segments.
    Text(TextVersion, TextPlaylist, String),
    /// DASH MPD.
    Dash(DashAddressing),
    /// Description of the title as JSON.
    Description,
}

/// Container of HLS segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HlsContainer {
    /// Fragmented MP4.
    Cmaf,
    /// Transport streams for video, packed audio for audio.
    Ts,
}

/// DASH segment addressing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DashAddressing {
    /// `$Time$`.
    Time,
    /// `$Number$`.
    Number,
}

/// Name of a segment set: `6000-9f86d081884c7d65`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentSet {
    /// Target segment length, in milliseconds.
    pub segment_ms: u32,
    /// Hash of content and packaging rules.
    pub version: u64,
}

/// The URL of a media segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUrl {
    /// The title.
    pub title: Key,
    /// Segment set: the title version and its segmentation.
    pub set: SegmentSet,
    /// Name of the rendition.
    pub rendition: String,
    /// Segment within the rendition.
    pub part: SegmentPart,
}

/// Segments of a rendition. Times are presentation times of the first sample, in the track's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentPart {
    /// The CMAF header.
    Init,
    /// The segment that starts at this time.
    At(u64, SegmentContainer),
    /// The CMAF segment with this number, from 1.
    Number(u32),
    /// The key frame at this time, as a CMAF segment of its own.
    KeyFrame(u64),
}

/// Container of a segment, given by the suffix of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentContainer {
    /// CMAF.
    Cmaf,
    /// Transport stream.
    Ts,
    /// Packed audio: AAC in ADTS.
    Aac,
    /// Packed audio: AC-3.
    Ac3,
    /// Packed audio: E-AC-3.
    Eac3,
    /// Packed audio: MP3.
    Mp3,
}

/// Reasons why a URL is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteError {
    /// The URL is longer than [`URL_BYTES_MAX`].
    TooLong,
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    Encoding,
    /// The path is not a valid file path.
    Path(BadKey),
    /// A known query parameter has an unknown value.
    Query(&'static str),
    /// A query parameter that would select a part of the title.
    UnsupportedParameter(&'static str),
    /// The URL is well-formed, but nothing can exist there.
    NotFound,
}

/// Maximum length of path and query together, in bytes.
pub const URL_BYTES_MAX: usize = 8192;

const CONTAINER_SUFFIXES: [(SegmentContainer, &str); 6] = [
    (SegmentContainer::Cmaf, ".m4s"),
    (SegmentContainer::Ts, ".ts"),
    (SegmentContainer::Aac, ".aac"),
    (SegmentContainer::Ac3, ".ac3"),
    (SegmentContainer::Eac3, ".ec3"),
    (SegmentContainer::Mp3, ".mp3"),
];

/// Manifests whose name is only a suffix.
const NAMELESS_MANIFESTS: [&str; 3] = [".m3u8", ".mpd", ".json"];
/// Name of a title's content key.
const KEY_NAME: &str = ".key";
/// Name of a title's ClearKey license.
pub const LICENSE_NAME: &str = ".license";

/// Parses the path and query of a URL.
///
/// # Errors
/// [`RouteError`] for URLs that are malformed or can never exist.
pub fn parse_route(path: &str, query: Option<&str>) -> Result<OriginRequest, RouteError> {
    if path.len() + query.map_or(0, str::len) > URL_BYTES_MAX {
        return Err(RouteError::TooLong);
    }
    let path = path
        .strip_prefix('/')
        .ok_or(RouteError::Path(BadKey::Empty))?;
    let spelled = path;
    let path = percent_decode(path)?;
    if let Some(request) = parse_own_path(&path) {
        return request;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if name.is_empty() {
        // The URL of a folder with a trailing slash. The folder's path must be valid.
        parse_key(folder)?;
        return Err(RouteError::NotFound);
    }
    if name == KEY_NAME || name == LICENSE_NAME {
        // Accepts a single spelling, so that a proxy can protect the keys by their URL.
        if query.is_some() || !spelled.ends_with(name) {
            return Err(RouteError::NotFound);
        }
        let title = parse_key(folder)?;
        return Ok(match name {
            KEY_NAME => OriginRequest::Key(title),
            _ => OriginRequest::License(title),
        });
    }
    if let Some(request) = text::parse_text_url(folder, name)? {
        if matches!(request, OriginRequest::Manifest { .. }) {
            refuse_selections(query)?;
        }
        return Ok(request);
    }
    match parse_manifest(folder, name, query)? {
        Some((title, manifest)) => {
            refuse_selections(query)?;
            // A nameless manifest or one inside a set is never a file; any other may be.
            let named = !NAMELESS_MANIFESTS.contains(&name) && manifest.segment_set().is_none();
            let file = named.then(|| parse_key(&path)).transpose()?;
            Ok(OriginRequest::Manifest {
                title,
                manifest,
                file,
            })
        }
        None => match parse_segment(folder, name)? {
            Some(segment) => Ok(OriginRequest::Segment(segment)),
            None => Ok(OriginRequest::File(parse_key(&path)?)),
        },
    }
}

/// URLs of the server itself, at the root.
fn parse_own_path(path: &str) -> Option<Result<OriginRequest, RouteError>> {
    let request = match path {
        "" => OriginRequest::Page,
        "healthz" => OriginRequest::Health,
        "readyz" => OriginRequest::Ready,
        "metrics" => OriginRequest::Metrics,
        "-/library.json" => OriginRequest::Library,
        _ => {
            let asset = path.strip_prefix("-/")?;
            return Some(parse_key(asset).map(|key| OriginRequest::Asset(key.as_str().to_owned())));
        }
    };
    Some(Ok(request))
}

fn parse_manifest(
    folder: &str,
    name: &str,
    query: Option<&str>,
) -> Result<Option<(Key, ManifestKind)>, RouteError> {
    if name == ".json" {
        return Ok(Some((parse_key(folder)?, ManifestKind::Description)));
    }
    if let Some(stem) = name.strip_suffix(".mpd") {
        let is_manifest = !stem.contains('-');
        return is_manifest
            .then(|| {
                Ok((
                    parse_key(folder)?,
                    ManifestKind::Dash(parameters::parse_addressing(query)?),
                ))
            })
            .transpose();
    }
    let Some(stem) = name.strip_suffix(".m3u8") else {
        return Ok(None);
    };
    if let Some((title, set, rendition)) = split_rendition(folder) {
        return parse_playlist(title, set, rendition, stem);
    }
    let is_manifest = !stem.contains(['-', '=']);
    is_manifest
        .then(|| {
            Ok((
                parse_key(folder)?,
                ManifestKind::Multivariant(parameters::parse_container(query)?),
            ))
        })
        .transpose()
}

/// Splits the folder of a rendition into title, set and rendition.
fn split_rendition(folder: &str) -> Option<(&str, SegmentSet, &str)> {
    let mut up = folder.rsplitn(3, '/');
    let name = up.next().filter(|name| name.contains('='))?;
    let set = SegmentSet::parse_name(up.next()?)?;
    Some((up.next().unwrap_or_default(), set, name))
}

fn parse_playlist(
    title: &str,
    set: SegmentSet,
    rendition: &str,
    stem: &str,
) -> Result<Option<(Key, ManifestKind)>, RouteError> {
    let rendition = rendition.to_owned();
    let manifest = match stem {
        "hls" => ManifestKind::Media(set, HlsContainer::Cmaf, rendition),
        "ts" => ManifestKind::Media(set, HlsContainer::Ts, rendition),
        "keyframes" => ManifestKind::KeyFrames(set, rendition),
        // A segment set contains only generated resources, so no other name exists.
        _ => return Err(RouteError::NotFound),
    };
    Ok(Some((parse_key(title)?, manifest)))
}

fn parse_segment(folder: &str, name: &str) -> Result<Option<SegmentUrl>, RouteError> {
    let mut up = folder.rsplitn(4, '/');
    let (a, b, c, d) = (up.next(), up.next(), up.next(), up.next());
    // Either `title/set/rendition` or `title/set/rendition/n`. The part after the title is never
    // empty.
    let near = (a.unwrap_or_default(), b.and_then(SegmentSet::parse_name), 1);
    let far = (b.unwrap_or_default(), c.and_then(SegmentSet::parse_name), 2);
    let ((rendition, Some(set), names), part) = (match (name, a) {
        ("init.mp4", _) => (near, Some(SegmentPart::Init)),
        (_, Some("n")) => (far, parse_number_part(name)),
        (_, Some("key")) => (far, parse_time_part(name, SegmentPart::KeyFrame)),
        _ => (
            near,
            CONTAINER_SUFFIXES.iter().find_map(|(form, suffix)| {
                let time = parse_decimal(name.strip_suffix(suffix)?)?;
                Some(SegmentPart::At(time, *form))
            }),
        ),
    }) else {
        return Ok(None);
    };
    let title = if names == 1 {
        c.map(|c| join_folders(d, c))
    } else {
        d.map(Cow::Borrowed)
    };
    let title = parse_key(&title.unwrap_or_default())?;
    // A segment set contains only generated resources, so no other name exists.
    let part = part.ok_or(RouteError::NotFound)?;
    if !rendition.contains('=') {
        return Err(RouteError::NotFound);
    }
    let rendition = rendition.to_owned();
    Ok(Some(SegmentUrl {
        title,
        set,
        rendition,
        part,
    }))
}

fn join_folders<'a>(front: Option<&'a str>, back: &'a str) -> Cow<'a, str> {
    front.map_or(Cow::Borrowed(back), |front| {
        Cow::Owned(format!("{front}/{back}"))
    })
}

fn parse_number_part(name: &str) -> Option<SegmentPart> {
    let number = parse_decimal(name.strip_suffix(".m4s")?)?;
    Some(SegmentPart::Number(
        u32::try_from(number).ok().filter(|&n| n > 0)?,
    ))
}

fn parse_time_part(name: &str, part: fn(u64) -> SegmentPart) -> Option<SegmentPart> {
    Some(part(parse_decimal(name.strip_suffix(".m4s")?)?))
}

/// Parses a decimal number in its canonical spelling: no sign, no leading zero, no overflow.
fn parse_decimal(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || !digits.starts_with('0');
    let digits_only = digits.bytes().all(|b| b.is_ascii_digit());
    (canonical && digits_only)
        .then(|| digits.parse().ok())
        .flatten()
}

fn parse_key(path: &str) -> Result<Key, RouteError> {
    Key::parse(path).map_err(RouteError::Path)
}

/// Percent-decodes once. An escaped `/` is an error, because no file name may contain a `/`.
fn percent_decode(path: &str) -> Result<Cow<'_, str>, RouteError> {
    if path.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(RouteError::Path(BadKey::Character));
    }
    if !path.contains('%') {
        return Ok(Cow::Borrowed(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, after) = rest.split_first_chunk::<2>().ok_or(RouteError::Encoding)?;
        rest = after;
        match parse_hex_byte(*hex).ok_or(RouteError::Encoding)? {
            b'/' | 0..=31 | 127 => return Err(RouteError::Path(BadKey::Character)),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| RouteError::Encoding)
}

fn parse_hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |b: u8| (b as char).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

impl ManifestKind {
    /// Returns the segment set that contains the manifest.
    pub fn segment_set(&self) -> Option<SegmentSet> {
        match self {
            ManifestKind::Media(set, ..) | ManifestKind::KeyFrames(set, _) => Some(*set),
            _ => None,
        }
    }

    /// Returns the same manifest in another segment set and text set.
    #[must_use]
    pub fn with_sets(self, set: SegmentSet, text: TextVersion) -> ManifestKind {
        match self {
            ManifestKind::Text(_, packing, name) => ManifestKind::Text(text, packing, name),
            ManifestKind::Media(_, packing, name) => ManifestKind::Media(set, packing, name),
            ManifestKind::KeyFrames(_, name) => ManifestKind::KeyFrames(set, name),
            other => other,
        }
    }
}

impl SegmentSet {
    fn parse_name(name: &str) -> Option<SegmentSet> {
        let (ms, version) = name.split_once('-')?;
        Some(SegmentSet {
            segment_ms: u32::try_from(parse_decimal(ms)?).ok()?,
            version: parse_version(version)?,
        })
    }
}

/// Parses a version in its canonical spelling: 16 lower-case hexadecimal digits.
fn parse_version(digits: &str) -> Option<u64> {
    let lower_hex = digits
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let version = u64::from_str_radix(digits, 16).ok();
    version.filter(|_| digits.len() == 16 && lower_hex)
}

impl SegmentContainer {
    /// Returns the URL suffix, with its dot.
    pub fn suffix(self) -> &'static str {
        CONTAINER_SUFFIXES
            .iter()
            .find(|(form, _)| *form == self)
            .map_or("", |(_, suffix)| suffix)
    }
}

// Explicit paths, because the fuzz target includes this file by its path.
#[path = "route/display.rs"]
mod display;
#[path = "route/parameters.rs"]
mod parameters;
#[cfg(test)]
mod tests;
#[path = "route/text.rs"]
mod text;
#[path = "route/url_forms.rs"]
pub mod url_forms;

pub use display::{escape_strictly, title_folder_url};
pub(crate) use parameters::refuse_selections;
pub use text::{CmafText, TextPart, TextPlaylist, TextUrl, TextVersion};
