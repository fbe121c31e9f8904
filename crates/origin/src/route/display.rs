//! Prints a [`RequestedResource`] as a URL, and a [`RouteError`] as text.

use super::{
    DashAddressing, HlsContainer, LICENSE_NAME, ManifestKind, RequestedResource, RouteError,
    SegmentAddress, SegmentSetId, SegmentUrl, TextUrl, URL_BYTES_MAX,
};
use std::fmt::{self, Write};
use store::Key;

impl fmt::Display for SegmentSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.segment_ms, self.version)
    }
}

impl fmt::Display for SegmentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentAddress::Init => f.write_str("init.mp4"),
            SegmentAddress::At(time, form) => write!(f, "{time}{}", form.suffix()),
            SegmentAddress::Number(number) => write!(f, "n/{number}.m4s"),
            SegmentAddress::KeyFrame(time) => write!(f, "key/{time}.m4s"),
        }
    }
}

impl fmt::Display for ManifestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestKind::Multivariant(HlsContainer::Cmaf) => f.write_str(".m3u8"),
            ManifestKind::Multivariant(HlsContainer::Ts) => f.write_str(".m3u8?format=ts"),
            ManifestKind::Media(set, HlsContainer::Cmaf, name) => {
                write!(f, "{set}/{}/hls.m3u8", EscapedPath(name))
            }
            ManifestKind::Media(set, HlsContainer::Ts, name) => {
                write!(f, "{set}/{}/ts.m3u8", EscapedPath(name))
            }
            ManifestKind::Text(version, playlist, name) => {
                write!(f, "{version}/{}/{playlist}", EscapedPath(name))
            }
            ManifestKind::KeyFrames(set, name) => {
                write!(f, "{set}/{}/keyframes.m3u8", EscapedPath(name))
            }
            ManifestKind::Dash(DashAddressing::Time) => f.write_str(".mpd"),
            ManifestKind::Dash(DashAddressing::Number) => f.write_str(".mpd?template=number"),
            ManifestKind::Description => f.write_str(".json"),
        }
    }
}

/// Prints the escaped path and query of the URL.
impl fmt::Display for RequestedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedResource::Page => f.write_str("/"),
            RequestedResource::Asset(name) => write!(f, "/-/{}", EscapedPath(name)),
            RequestedResource::Library => f.write_str("/-/library.json"),
            RequestedResource::Health => f.write_str("/healthz"),
            RequestedResource::Ready => f.write_str("/readyz"),
            RequestedResource::Metrics => f.write_str("/metrics"),
            RequestedResource::Manifest {
                title, manifest, ..
            } => write!(f, "{}{manifest}", title_folder_url(title)),
            RequestedResource::Segment(SegmentUrl {
                title,
                set,
                rendition,
                part,
            }) => {
                write!(
                    f,
                    "{}{set}/{}/{part}",
                    title_folder_url(title),
                    EscapedPath(rendition)
                )
            }
            RequestedResource::Text(TextUrl {
                title,
                version,
                rendition,
                part,
            }) => {
                let folder = title_folder_url(title);
                write!(f, "{folder}{version}/{}/{part}", EscapedPath(rendition))
            }
            RequestedResource::License(title) => {
                write!(f, "{}{LICENSE_NAME}", title_folder_url(title))
            }
            RequestedResource::Key(title) => write!(f, "{}.key", title_folder_url(title)),
            RequestedResource::File(key) => write!(f, "/{}", EscapedPath(key.as_str())),
        }
    }
}

/// Returns the escaped URL path of a title's folder, with a slash at both ends.
pub fn title_folder_url(title: &Key) -> String {
    if title.is_root() {
        "/".to_owned()
    } else {
        format!("/{}/", EscapedPath(title.as_str()))
    }
}

/// Escapes everything in a title's path except unreserved characters (RFC 3986, 2.3) and `/`.
pub fn escape_strictly(title: &Key) -> String {
    let mut out = String::with_capacity(title.as_str().len());
    for byte in title.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte.into()),
            b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Prints a path without escaping `/`. Every other character that a path segment may not contain
/// (RFC 3986, 3.3) is escaped.
struct EscapedPath<'a>(&'a str);

impl fmt::Display for EscapedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => f.write_char(byte.into()),
            _ if b"-._~!$&'()*+,;=:@/".contains(&byte) => f.write_char(byte.into()),
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::TooLong => write!(f, "the URL is longer than {URL_BYTES_MAX} bytes"),
            RouteError::Encoding => f.write_str("the path is not percent-encoded UTF-8"),
            RouteError::Path(why) => why.fmt(f),
            RouteError::Query(why) => f.write_str(why),
            RouteError::UnsupportedParameter(name) => write!(
                f,
                "the parameter `{name}` is not supported; without it, the response is the whole title"
            ),
            RouteError::NotFound => f.write_str("not found"),
        }
    }
}

impl std::error::Error for RouteError {}
