//! Serializes the head of a response (RFC 9112 sections 4 and 6.3).

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderValue, StatusCode, Version};

use crate::headers::{SerializedFields, write_field as field};

/// The way in which a client finds the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// No body, but possibly a Content-Length, as in the response to HEAD.
    Silent,
    /// Neither a body nor a Content-Length, as in 204 and 304 (RFC 9110 sections 15.3.5 and
    /// 15.4.5).
    None,
    /// A body of this many bytes.
    Length(u64),
    Chunked,
    /// A body that ends when the connection closes (RFC 9112 section 6.3, rule 8).
    UntilClose,
}

/// Properties of a response that depend on the request.
#[derive(Clone, Copy)]
pub(super) struct ResponseOptions {
    /// The request's method is HEAD.
    pub(super) head: bool,
    /// The version of the response.
    pub(super) version: Version,
    /// The connection closes after the response.
    pub(super) last: bool,
}

impl BodyFraming {
    /// Returns the framing for a response with this status. `len` is the body's length, if the
    /// length is known.
    pub(super) fn choose_framing(
        options: ResponseOptions,
        status: StatusCode,
        len: Option<u64>,
    ) -> BodyFraming {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
        match len {
            _ if options.head => BodyFraming::Silent,
            _ if bodiless.contains(&status) || status.is_informational() => BodyFraming::None,
            Some(len) => BodyFraming::Length(len),
            None if options.version == Version::HTTP_10 => BodyFraming::UntilClose,
            None => BodyFraming::Chunked,
        }
    }

    fn write_framing(self, out: &mut Vec<u8>) {
        match self {
            BodyFraming::Silent | BodyFraming::None | BodyFraming::UntilClose => {}
            BodyFraming::Length(len) => {
                let mut digits = itoa::Buffer::new();
                field(out, "content-length", digits.format(len).as_bytes());
            }
            BodyFraming::Chunked => field(out, "transfer-encoding", b"chunked"),
        }
    }
}

/// Writes the head to `out`. The head contains `fields` and the header fields of `parts`.
///
/// Returns whether the connection closes after this response, because `options` or a Connection
/// header requires the close.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    parts: &Parts,
    fields: Option<&SerializedFields>,
    framing: BodyFraming,
    options: ResponseOptions,
) -> bool {
    let (mut has_connection, mut closes, mut dated) = (false, options.last, false);
    write_status(out, options.version, parts.status);
    if let Some(fields) = fields {
        let twice = |name| fields.header_map().contains_key(name);
        debug_assert!(
            !parts.headers.keys().any(twice),
            "a field is in both the map and the serialized fields"
        );
        out.extend_from_slice(fields.header_lines());
    }
    for (name, value) in &parts.headers {
        match *name {
            // Skips the framing fields, because `write_framing` adds them. A response to HEAD keeps
            // its Content-Length.
            CONTENT_LENGTH if framing != BodyFraming::Silent => continue,
            TRANSFER_ENCODING | TRAILER => continue,
            CONNECTION => {
                has_connection = true;
                closes |= is_close(value);
            }
            DATE => dated = true,
            _ => {}
        }
        field(out, name.as_str(), value.as_bytes());
    }
    // HTTP/1.0 connections close by default, so the field is not necessary.
    if options.last && !has_connection && options.version != Version::HTTP_10 {
        field(out, "connection", b"close");
    }
    framing.write_framing(out);
    if !dated {
        field(out, "date", &current_date());
    }
    out.extend_from_slice(b"\r\n");
    closes
}

fn write_status(out: &mut Vec<u8>, version: Version, status: StatusCode) {
    if (version, status) == (Version::HTTP_11, StatusCode::OK) {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    let version = match version {
        Version::HTTP_10 => "HTTP/1.0 ",
        _ => "HTTP/1.1 ",
    };
    let reason = status.canonical_reason().unwrap_or_default();
    for part in [version, status.as_str(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn is_close(value: &HeaderValue) -> bool {
    let mut words = value.as_bytes().split(|byte| *byte == b',');
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Returns the current time as a value of `Date` (RFC 9110 section 6.6.1). Each thread formats the
/// value at most once per second.
fn current_date() -> [u8; 29] {
    thread_local! {
        static WRITTEN: Cell<(u64, [u8; 29])> = const { Cell::new((u64::MAX, [0; 29])) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.as_ref().map_or(0, Duration::as_secs);
    let (second, mut text) = WRITTEN.get();
    if second != now {
        let written = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now));
        text.copy_from_slice(written.as_bytes());
        WRITTEN.set((now, text));
    }
    text
}
