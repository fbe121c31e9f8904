//! URL ↔ [`Request`]: syntax only. Nothing is looked up here, and every URL that we print is read
//! back as the same request.
//!
//! A URL is a title's path and, behind it, what is wanted of the title. The second part exists
//! on no disk, and is recognised from the end, so that titles may be named as they like.

use std::borrow::Cow;
use store::{BadKey, Key};

/// What a URL asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The page.
    Page,
    /// Something the page needs, by its name below `/-/`.
    Asset(String),
    /// The list of titles, for the page.
    Library,
    /// Whether the process lives.
    Health,
    /// Whether it takes new work.
    Ready,
    /// Counters, for Prometheus.
    Metrics,
    /// A text about a title.
    Manifest {
        /// The title.
        title: Key,
        /// Which text.
        manifest: Manifest,
        /// The path as a file's, where it could be one: a real file of that name goes first.
        file: Option<Key>,
    },
    /// Media of a title.
    Segment(Segment),
    /// The key that a title's segments are encrypted with.
    Key(Key),
    /// A file as it is.
    File(Key),
}

/// Texts about a title.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Manifest {
    /// HLS multivariant playlist.
    Multivariant(Packing),
    /// HLS media playlist of a rendition, beside its segments.
    Media(Set, Packing, String),
    /// HLS I-frame playlist of a rendition, beside its key frames.
    KeyFrames(Set, String),
    /// DASH MPD.
    Dash(Addressing),
    /// What we know about the title, as JSON.
    Description,
}

/// How HLS segments are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Fragmented MP4.
    Cmaf,
    /// Transport streams for video, packed audio for sound.
    Ts,
}

/// How DASH names segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// `$Time$`.
    Time,
    /// `$Number$`.
    Number,
}

/// Names a set of segments: `6000-9f86d081884c7d65`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Set {
    /// Wished segment length, in milliseconds.
    pub segment_ms: u32,
    /// Content and rules.
    pub version: u64,
}

/// A piece of media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The title.
    pub title: Key,
    /// Which state of it.
    pub set: Set,
    /// Which rendition, by name.
    pub rendition: String,
    /// Which piece.
    pub part: Part,
}

/// Pieces of a rendition. Times are when the first sample is shown, in the track's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The CMAF header.
    Init,
    /// The segment that begins at this time.
    At(u64, Form),
    /// The CMAF segment with this number, from 1.
    Number(u32),
    /// The key frame at this time, as a CMAF segment of its own.
    KeyFrame(u64),
}

/// How a segment is wrapped; its URL's suffix says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
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

/// Why a URL is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// Over [`URL_BYTES_MAX`].
    TooLong,
    /// `%` without two hexadecimal digits, or bytes that are not UTF-8.
    Encoding,
    /// A path that no file can have.
    Path(BadKey),
    /// A query that we know, with a value that we do not.
    Query(&'static str),
    /// Well-formed, but there cannot be anything there.
    Nothing,
}

/// Longest path and query together, in bytes.
pub const URL_BYTES_MAX: usize = 8192;

const FORMS: [(Form, &str); 6] = [
    (Form::Cmaf, ".m4s"),
    (Form::Ts, ".ts"),
    (Form::Aac, ".aac"),
    (Form::Ac3, ".ac3"),
    (Form::Eac3, ".ec3"),
    (Form::Mp3, ".mp3"),
];

/// Manifests that are only a suffix.
const NAMELESS: [&str; 3] = [".m3u8", ".mpd", ".json"];
/// A title's key.
const KEY: &str = ".key";

/// Reads the path and query of a URL.
///
/// # Errors
/// [`Bad`], for what is malformed, and for what can never exist.
pub fn parse(path: &str, query: Option<&str>) -> Result<Request, Bad> {
    if path.len() + query.map_or(0, str::len) > URL_BYTES_MAX {
        return Err(Bad::TooLong);
    }
    let path = path.strip_prefix('/').ok_or(Bad::Path(BadKey::Empty))?;
    let spelled = path;
    let path = decode(path)?;
    if let Some(request) = own(&path) {
        return request;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if name.is_empty() {
        // A folder's address with a slash behind it; the folder itself must still be sound.
        key(folder)?;
        return Err(Bad::Nothing);
    }
    if name == KEY {
        // In one spelling only, so that what stands before us can guard it by that.
        let plain = query.is_none() && spelled.ends_with(KEY);
        return plain
            .then(|| Ok(Request::Key(key(folder)?)))
            .ok_or(Bad::Nothing)?;
    }
    match manifest(folder, name, query)? {
        Some((title, manifest)) => {
            // A manifest without a name can be no file's, nor what is inside a set; any other could be.
            let named = !NAMELESS.contains(&name) && manifest.set().is_none();
            let file = named.then(|| key(&path)).transpose()?;
            Ok(Request::Manifest {
                title,
                manifest,
                file,
            })
        }
        None => match segment(folder, name)? {
            Some(segment) => Ok(Request::Segment(segment)),
            None => Ok(Request::File(key(&path)?)),
        },
    }
}

/// Addresses that are ours alone, at the root.
fn own(path: &str) -> Option<Result<Request, Bad>> {
    let request = match path {
        "" => Request::Page,
        "healthz" => Request::Health,
        "readyz" => Request::Ready,
        "metrics" => Request::Metrics,
        "-/library.json" => Request::Library,
        _ => {
            let asset = path.strip_prefix("-/")?;
            return Some(key(asset).map(|key| Request::Asset(key.as_str().to_owned())));
        }
    };
    Some(Ok(request))
}

fn manifest(folder: &str, name: &str, query: Option<&str>) -> Result<Option<(Key, Manifest)>, Bad> {
    if name == ".json" {
        return Ok(Some((key(folder)?, Manifest::Description)));
    }
    if let Some(stem) = name.strip_suffix(".mpd") {
        let ours = !stem.contains('-');
        return ours
            .then(|| Ok((key(folder)?, Manifest::Dash(addressing(query)?))))
            .transpose();
    }
    let Some(stem) = name.strip_suffix(".m3u8") else {
        return Ok(None);
    };
    if let Some((title, set, rendition)) = rendition(folder) {
        return playlist(title, set, rendition, stem);
    }
    let ours = !stem.contains(['-', '=']);
    ours.then(|| Ok((key(folder)?, Manifest::Multivariant(packing(query)?))))
        .transpose()
}

/// The folder of a rendition: whose, of which set, and its name.
fn rendition(folder: &str) -> Option<(&str, Set, &str)> {
    let mut up = folder.rsplitn(3, '/');
    let name = up.next().filter(|name| name.contains('='))?;
    let set = Set::parse(up.next()?)?;
    Some((up.next().unwrap_or_default(), set, name))
}

fn playlist(
    title: &str,
    set: Set,
    rendition: &str,
    stem: &str,
) -> Result<Option<(Key, Manifest)>, Bad> {
    let rendition = rendition.to_owned();
    let manifest = match stem {
        "hls" => Manifest::Media(set, Packing::Cmaf, rendition),
        "ts" => Manifest::Media(set, Packing::Ts, rendition),
        "keyframes" => Manifest::KeyFrames(set, rendition),
        // Inside a set there is nothing but what we make.
        _ => return Err(Bad::Nothing),
    };
    Ok(Some((key(title)?, manifest)))
}

fn segment(folder: &str, name: &str) -> Result<Option<Segment>, Bad> {
    let mut up = folder.rsplitn(4, '/');
    let (a, b, c, d) = (up.next(), up.next(), up.next(), up.next());
    // title/set/rendition, or title/set/rendition/n: what is behind the title is never empty.
    let near = (a.unwrap_or_default(), b.and_then(Set::parse), 1);
    let far = (b.unwrap_or_default(), c.and_then(Set::parse), 2);
    let ((rendition, Some(set), names), part) = (match (name, a) {
        ("init.mp4", _) => (near, Some(Part::Init)),
        (_, Some("n")) => (far, number_part(name)),
        (_, Some("key")) => (far, time_part(name, Part::KeyFrame)),
        _ => (
            near,
            FORMS.iter().find_map(|(form, suffix)| {
                let time = decimal(name.strip_suffix(suffix)?)?;
                Some(Part::At(time, *form))
            }),
        ),
    }) else {
        return Ok(None);
    };
    let title = if names == 1 {
        c.map(|c| rejoin(d, c))
    } else {
        d.map(Cow::Borrowed)
    };
    let title = key(&title.unwrap_or_default())?;
    // Inside a set there is nothing but what we make.
    let part = part.ok_or(Bad::Nothing)?;
    if !rendition.contains('=') {
        return Err(Bad::Nothing);
    }
    let rendition = rendition.to_owned();
    Ok(Some(Segment {
        title,
        set,
        rendition,
        part,
    }))
}

fn rejoin<'a>(front: Option<&'a str>, back: &'a str) -> Cow<'a, str> {
    front.map_or(Cow::Borrowed(back), |front| {
        Cow::Owned(format!("{front}/{back}"))
    })
}

fn number_part(name: &str) -> Option<Part> {
    let number = decimal(name.strip_suffix(".m4s")?)?;
    Some(Part::Number(u32::try_from(number).ok().filter(|&n| n > 0)?))
}

fn time_part(name: &str, part: fn(u64) -> Part) -> Option<Part> {
    Some(part(decimal(name.strip_suffix(".m4s")?)?))
}

/// A decimal number in its only spelling: no sign, no leading zero, no overflow.
fn decimal(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || !digits.starts_with('0');
    let digits_only = digits.bytes().all(|b| b.is_ascii_digit());
    (canonical && digits_only)
        .then(|| digits.parse().ok())
        .flatten()
}

fn key(path: &str) -> Result<Key, Bad> {
    Key::parse(path).map_err(Bad::Path)
}

fn packing(query: Option<&str>) -> Result<Packing, Bad> {
    match value(query, "format") {
        None | Some("cmaf") => Ok(Packing::Cmaf),
        Some("ts") => Ok(Packing::Ts),
        Some(_) => Err(Bad::Query("format is cmaf or ts")),
    }
}

fn addressing(query: Option<&str>) -> Result<Addressing, Bad> {
    match value(query, "template") {
        None | Some("time") => Ok(Addressing::Time),
        Some("number") => Ok(Addressing::Number),
        Some(_) => Err(Bad::Query("template is time or number")),
    }
}

/// The last value of a query parameter. Our values need no escapes, so none are read.
fn value<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value)
        .next_back()
}

/// Percent-decodes once. An escaped `/` is part of a name, which no name may be.
fn decode(path: &str) -> Result<Cow<'_, str>, Bad> {
    if path.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Bad::Path(BadKey::Character));
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
        let (hex, after) = rest.split_first_chunk::<2>().ok_or(Bad::Encoding)?;
        rest = after;
        match hex_byte(*hex).ok_or(Bad::Encoding)? {
            b'/' | 0..=31 | 127 => return Err(Bad::Path(BadKey::Character)),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| Bad::Encoding)
}

fn hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |b: u8| (b as char).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

impl Manifest {
    /// The set in whose folder it lies.
    pub fn set(&self) -> Option<Set> {
        match self {
            Manifest::Media(set, ..) | Manifest::KeyFrames(set, _) => Some(*set),
            _ => None,
        }
    }

    /// The same of another set.
    #[must_use]
    pub fn of_set(self, set: Set) -> Manifest {
        match self {
            Manifest::Media(_, packing, name) => Manifest::Media(set, packing, name),
            Manifest::KeyFrames(_, name) => Manifest::KeyFrames(set, name),
            other => other,
        }
    }
}

impl Set {
    fn parse(name: &str) -> Option<Set> {
        let (ms, version) = name.split_once('-')?;
        let lower_hex = version
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let set = Set {
            segment_ms: u32::try_from(decimal(ms)?).ok()?,
            version: u64::from_str_radix(version, 16).ok()?,
        };
        (version.len() == 16 && lower_hex).then_some(set)
    }
}

impl Form {
    /// The URL's suffix, with its dot.
    pub fn suffix(self) -> &'static str {
        FORMS
            .iter()
            .find(|(form, _)| *form == self)
            .map_or("", |(_, suffix)| suffix)
    }
}

// Its place is said, since the fuzz target takes this file by its path.
#[path = "route/display.rs"]
mod display;
#[cfg(test)]
mod tests;

pub use display::{escaped, folder};
