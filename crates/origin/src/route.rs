//! Converts a URL to a [`RequestedResource`] and back. Only the syntax of the URL matters, and no file
//! is looked up. If a request is printed as a URL, parsing this URL returns the same request,
//! except for the `file` of a manifest.
//!
//! The URL of a title's resource consists of the title's path and the name of the resource. The
//! name of the resource is not a path on disk. It is recognised from the end of the URL, so that
//! titles may have any name.

use std::borrow::Cow;
use store::{BadKey, Key};

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedResource {
    /// The player page.
    Page,
    /// An asset of the page. The string is the asset's name below `/-/`.
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
        /// The path as a file key, if a static file may exist at this path. Such a file takes
        /// precedence over the generated manifest.
        file: Option<Key>,
    },
    /// A media segment of a title.
    Segment(SegmentUrl),
    /// A text resource of a title, other than a playlist.
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
    /// HLS media playlist of a rendition. Its URL is in the folder of the rendition's segments.
    Media(SegmentSetId, HlsContainer, String),
    /// HLS I-frame playlist of a rendition. Its URL is in the folder of the rendition's segments.
    KeyFrames(SegmentSetId, String),
    /// HLS media playlist of a text rendition. Its URL is in the folder of the rendition's
    /// segments.
    Text(TextSetId, TextPlaylist, String),
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

/// Name of a segment set, such as `6000-9f86d081884c7d65`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentSetId {
    /// Target segment length, in milliseconds.
    pub segment_ms: u32,
    /// Hash of the title's content and the packaging rules.
    pub version: u64,
}

/// The URL of a media segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUrl {
    /// The title.
    pub title: Key,
    /// Segment set, which identifies the version of the title and its segmentation.
    pub set: SegmentSetId,
    /// Name of the rendition.
    pub rendition: String,
    /// Segment within the rendition.
    pub part: SegmentAddress,
}

/// Segments of a rendition. Times are presentation times, in ticks of the track's timescale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentAddress {
    /// The CMAF header.
    Init,
    /// The segment that starts at this time.
    At(u64, SegmentContainer),
    /// The CMAF segment with this number. The first number is 1.
    Number(u32),
    /// A CMAF segment that contains only the key frame at this time.
    KeyFrame(u64),
}

/// Container of a segment. It follows from the suffix of the segment's URL.
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
    /// The URL contains a `%` without two hexadecimal digits, or is not UTF-8 after decoding.
    Encoding,
    /// The path is not a valid file path.
    Path(BadKey),
    /// A known query parameter has an unknown value.
    Query(&'static str),
    /// A query parameter would select a part of the title, which is not supported.
    UnsupportedParameter(&'static str),
    /// The URL is well-formed, but no resource can exist at this URL.
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

/// File names of manifests that consist only of a suffix.
const NAMELESS_MANIFESTS: [&str; 3] = [".m3u8", ".mpd", ".json"];
/// Name of a title's content key.
const KEY_NAME: &str = ".key";
/// Name of a title's ClearKey license.
pub const LICENSE_NAME: &str = ".license";

/// Parses the path and query of a URL.
///
/// # Errors
/// A [`RouteError`] if the URL is malformed, or if no resource can ever exist at the URL.
pub fn parse_route(path: &str, query: Option<&str>) -> Result<RequestedResource, RouteError> {
    if is_too_long(path, query) {
        return Err(RouteError::TooLong);
    }
    let path = path
        .strip_prefix('/')
        .ok_or(RouteError::Path(BadKey::Empty))?;
    let spelled = path;
    let path = percent_decode(path)?;
    if let Some(request) = parse_non_title_path(&path) {
        return request;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if name.is_empty() {
        // A URL with a trailing slash names a folder, which is not a resource. An invalid folder
        // path is a separate error.
        parse_store_key(folder)?;
        return Err(RouteError::NotFound);
    }
    if name == KEY_NAME || name == LICENSE_NAME {
        // Accepts only one spelling, so that a proxy can protect the keys with a rule for this URL.
        if query.is_some() || !spelled.ends_with(name) {
            return Err(RouteError::NotFound);
        }
        let title = parse_store_key(folder)?;
        return Ok(match name {
            KEY_NAME => RequestedResource::Key(title),
            _ => RequestedResource::License(title),
        });
    }
    if let Some(request) = text::parse_text_url(folder, name)? {
        if matches!(request, RequestedResource::Manifest { .. }) {
            refuse_selection_parameters(query)?;
        }
        return Ok(request);
    }
    match parse_manifest_url(folder, name, query)? {
        Some((title, manifest)) => {
            refuse_selection_parameters(query)?;
            // A manifest URL inside a segment set, or with a name in `NAMELESS_MANIFESTS`, never
            // names a static file. Any other manifest URL may name a static file.
            let named = !NAMELESS_MANIFESTS.contains(&name) && manifest.segment_set().is_none();
            let file = named.then(|| parse_store_key(&path)).transpose()?;
            Ok(RequestedResource::Manifest {
                title,
                manifest,
                file,
            })
        }
        None => match parse_segment_url(folder, name)? {
            Some(segment) => Ok(RequestedResource::Segment(segment)),
            None => Ok(RequestedResource::File(parse_store_key(&path)?)),
        },
    }
}

/// Returns whether a URL is longer than [`URL_BYTES_MAX`].
pub(crate) fn is_too_long(path: &str, query: Option<&str>) -> bool {
    path.len() + query.map_or(0, str::len) > URL_BYTES_MAX
}

/// Parses the URLs of the server itself, which are at the root.
fn parse_non_title_path(path: &str) -> Option<Result<RequestedResource, RouteError>> {
    let request = match path {
        "" => RequestedResource::Page,
        "healthz" => RequestedResource::Health,
        "readyz" => RequestedResource::Ready,
        "metrics" => RequestedResource::Metrics,
        "-/library.json" => RequestedResource::Library,
        _ => {
            let asset = path.strip_prefix("-/")?;
            return Some(
                parse_store_key(asset).map(|key| RequestedResource::Asset(key.as_str().to_owned())),
            );
        }
    };
    Some(Ok(request))
}

fn parse_manifest_url(
    folder: &str,
    name: &str,
    query: Option<&str>,
) -> Result<Option<(Key, ManifestKind)>, RouteError> {
    if name == ".json" {
        return Ok(Some((parse_store_key(folder)?, ManifestKind::Description)));
    }
    if let Some(stem) = name.strip_suffix(".mpd") {
        let is_manifest = !stem.contains('-');
        return is_manifest
            .then(|| {
                Ok((
                    parse_store_key(folder)?,
                    ManifestKind::Dash(parameters::parse_addressing_parameter(query)?),
                ))
            })
            .transpose();
    }
    let Some(stem) = name.strip_suffix(".m3u8") else {
        return Ok(None);
    };
    if let Some((title, set, rendition)) = split_rendition_folder(folder) {
        return parse_playlist_url(title, set, rendition, stem);
    }
    let is_manifest = !stem.contains(['-', '=']);
    is_manifest
        .then(|| {
            Ok((
                parse_store_key(folder)?,
                ManifestKind::Multivariant(parameters::parse_container_parameter(query)?),
            ))
        })
        .transpose()
}

/// Splits the folder of a rendition into title, set and rendition.
fn split_rendition_folder(folder: &str) -> Option<(&str, SegmentSetId, &str)> {
    let mut up = folder.rsplitn(3, '/');
    let name = up.next().filter(|name| name.contains('='))?;
    let set = SegmentSetId::parse_set_name(up.next()?)?;
    Some((up.next().unwrap_or_default(), set, name))
}

fn parse_playlist_url(
    title: &str,
    set: SegmentSetId,
    rendition: &str,
    stem: &str,
) -> Result<Option<(Key, ManifestKind)>, RouteError> {
    let rendition = rendition.to_owned();
    let manifest = match stem {
        "hls" => ManifestKind::Media(set, HlsContainer::Cmaf, rendition),
        "ts" => ManifestKind::Media(set, HlsContainer::Ts, rendition),
        "keyframes" => ManifestKind::KeyFrames(set, rendition),
        // A segment set contains only generated resources, so a file with another name cannot
        // exist.
        _ => return Err(RouteError::NotFound),
    };
    Ok(Some((parse_store_key(title)?, manifest)))
}

fn parse_segment_url(folder: &str, name: &str) -> Result<Option<SegmentUrl>, RouteError> {
    let mut up = folder.rsplitn(4, '/');
    let (a, b, c, d) = (up.next(), up.next(), up.next(), up.next());
    // The folder is `title/set/rendition`, `title/set/rendition/n` or `title/set/rendition/key`.
    let near = (
        a.unwrap_or_default(),
        b.and_then(SegmentSetId::parse_set_name),
        1,
    );
    let far = (
        b.unwrap_or_default(),
        c.and_then(SegmentSetId::parse_set_name),
        2,
    );
    let ((rendition, Some(set), names), part) = (match (name, a) {
        ("init.mp4", _) => (near, Some(SegmentAddress::Init)),
        (_, Some("n")) => (far, parse_segment_number(name)),
        (_, Some("key")) => (far, parse_segment_time(name, SegmentAddress::KeyFrame)),
        _ => (
            near,
            CONTAINER_SUFFIXES.iter().find_map(|(form, suffix)| {
                let time = parse_decimal(name.strip_suffix(suffix)?)?;
                Some(SegmentAddress::At(time, *form))
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
    let title = parse_store_key(&title.unwrap_or_default())?;
    // A segment set contains only generated resources, so a file with another name cannot exist.
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

fn parse_segment_number(name: &str) -> Option<SegmentAddress> {
    let number = parse_decimal(name.strip_suffix(".m4s")?)?;
    Some(SegmentAddress::Number(
        u32::try_from(number).ok().filter(|&n| n > 0)?,
    ))
}

fn parse_segment_time(name: &str, part: fn(u64) -> SegmentAddress) -> Option<SegmentAddress> {
    Some(part(parse_decimal(name.strip_suffix(".m4s")?)?))
}

/// Parses a decimal number in its canonical spelling. Returns `None` for a sign, a leading zero or
/// an overflow.
fn parse_decimal(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || !digits.starts_with('0');
    let digits_only = digits.bytes().all(|b| b.is_ascii_digit());
    (canonical && digits_only)
        .then(|| digits.parse().ok())
        .flatten()
}

fn parse_store_key(path: &str) -> Result<Key, RouteError> {
    Key::parse(path).map_err(RouteError::Path)
}

/// Percent-decodes a text once. An escaped `/` is an error, because no file name may contain a `/`.
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
    pub fn segment_set(&self) -> Option<SegmentSetId> {
        match self {
            ManifestKind::Media(set, ..) | ManifestKind::KeyFrames(set, _) => Some(*set),
            _ => None,
        }
    }

    /// Returns the same manifest in the given segment set or text set.
    #[must_use]
    pub fn replace_sets(self, set: SegmentSetId, text: TextSetId) -> ManifestKind {
        match self {
            ManifestKind::Text(_, packing, name) => ManifestKind::Text(text, packing, name),
            ManifestKind::Media(_, packing, name) => ManifestKind::Media(set, packing, name),
            ManifestKind::KeyFrames(_, name) => ManifestKind::KeyFrames(set, name),
            other => other,
        }
    }
}

impl SegmentSetId {
    fn parse_set_name(name: &str) -> Option<SegmentSetId> {
        let (ms, version) = name.split_once('-')?;
        Some(SegmentSetId {
            segment_ms: u32::try_from(parse_decimal(ms)?).ok()?,
            version: parse_version(version)?,
        })
    }
}

/// Parses a version in its canonical spelling of 16 lower-case hexadecimal digits.
fn parse_version(digits: &str) -> Option<u64> {
    let lower_hex = digits
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let version = u64::from_str_radix(digits, 16).ok();
    version.filter(|_| digits.len() == 16 && lower_hex)
}

impl SegmentContainer {
    /// Returns the URL suffix, including the dot.
    pub fn suffix(self) -> &'static str {
        CONTAINER_SUFFIXES
            .iter()
            .find(|(form, _)| *form == self)
            .map_or("", |(_, suffix)| suffix)
    }
}

// The modules have explicit paths, because the fuzz target includes this file by its path.
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
pub(crate) use parameters::refuse_selection_parameters;
pub use text::{CmafTextFormat, TextPlaylist, TextResource, TextSetId, TextUrl};
