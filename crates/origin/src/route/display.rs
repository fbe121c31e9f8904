//! [`Request`] → URL, and what is wrong with a URL in words.

use super::{Addressing, Bad, Manifest, Packing, Part, Request, Segment, Set, URL_BYTES_MAX};
use std::fmt::{self, Write};
use store::Key;

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.segment_ms, self.version)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Init => f.write_str("init.mp4"),
            Part::At(time, form) => write!(f, "{time}{}", form.suffix()),
            Part::Number(number) => write!(f, "n/{number}.m4s"),
            Part::KeyFrame(time) => write!(f, "key/{time}.m4s"),
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Manifest::Multivariant(Packing::Cmaf) => f.write_str(".m3u8"),
            Manifest::Multivariant(Packing::Ts) => f.write_str(".m3u8?format=ts"),
            Manifest::Media(set, Packing::Cmaf, name) => {
                write!(f, "{set}/{}/hls.m3u8", Escaped(name))
            }
            Manifest::Media(set, Packing::Ts, name) => write!(f, "{set}/{}/ts.m3u8", Escaped(name)),
            Manifest::KeyFrames(set, name) => write!(f, "{set}/{}/keyframes.m3u8", Escaped(name)),
            Manifest::Dash(Addressing::Time) => f.write_str(".mpd"),
            Manifest::Dash(Addressing::Number) => f.write_str(".mpd?template=number"),
            Manifest::Description => f.write_str(".json"),
        }
    }
}

/// A request's URL: path and query, escaped.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Page => f.write_str("/"),
            Request::Asset(name) => write!(f, "/-/{}", Escaped(name)),
            Request::Library => f.write_str("/-/library.json"),
            Request::Health => f.write_str("/healthz"),
            Request::Ready => f.write_str("/readyz"),
            Request::Metrics => f.write_str("/metrics"),
            Request::Manifest {
                title, manifest, ..
            } => write!(f, "{}{manifest}", folder(title)),
            Request::Segment(Segment {
                title,
                set,
                rendition,
                part,
            }) => {
                write!(f, "{}{set}/{}/{part}", folder(title), Escaped(rendition))
            }
            Request::Key(title) => write!(f, "{}.key", folder(title)),
            Request::File(key) => write!(f, "/{}", Escaped(key.as_str())),
        }
    }
}

/// A title's path as others continue it: escaped, with a slash at both ends.
pub fn folder(title: &Key) -> String {
    if title.is_root() {
        "/".to_owned()
    } else {
        format!("/{}/", Escaped(title.as_str()))
    }
}

/// A title's path with everything escaped that is not plain wherever a URL may hold it (RFC 3986 §2.3);
/// `/` stays.
pub fn escaped(title: &Key) -> String {
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

/// A path with everything escaped that a path segment may not hold (RFC 3986 §3.3); `/` stays.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => f.write_char(byte.into()),
            _ if b"-._~!$&'()*+,;=:@/".contains(&byte) => f.write_char(byte.into()),
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::TooLong => write!(f, "the address is over {URL_BYTES_MAX} bytes"),
            Bad::Encoding => f.write_str("the path is not percent-encoded UTF-8"),
            Bad::Path(why) => why.fmt(f),
            Bad::Query(why) => f.write_str(why),
            Bad::Nothing => f.write_str("there is nothing of that name"),
        }
    }
}

impl std::error::Error for Bad {}
