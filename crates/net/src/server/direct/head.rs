//! The head of an answer as text (RFC 9112 sections 4 and 6.3).

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderValue, StatusCode};

use crate::headers::{Fields, write as field};

/// How a client knows where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none, whatever length is said: the answer to HEAD.
    Silent,
    /// There is none, and no length to be said (RFC 9110 sections 15.3.5 and 15.4.5).
    None,
    /// By its length, in bytes.
    Length(u64),
    Chunked,
}

impl Framing {
    /// Of an answer of this status, the length of its body being `len` bytes where it is known.
    pub(super) fn of(head: bool, status: StatusCode, len: Option<u64>) -> Framing {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
        match len {
            _ if head => Framing::Silent,
            _ if bodiless.contains(&status) || status.is_informational() => Framing::None,
            Some(len) => Framing::Length(len),
            None => Framing::Chunked,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Framing::Silent | Framing::None => {}
            Framing::Length(len) => {
                let mut digits = itoa::Buffer::new();
                field(out, "content-length", digits.format(len).as_bytes());
            }
            Framing::Chunked => field(out, "transfer-encoding", b"chunked"),
        }
    }
}

/// Writes it to `out`, with `fields` beside those of `parts`. Returns whether it says that the connection ends, as it does if `last`.
pub(super) fn write(
    out: &mut Vec<u8>,
    parts: &Parts,
    fields: Option<&Fields>,
    framing: Framing,
    last: bool,
) -> bool {
    let (mut said, mut closes, mut dated) = (false, last, false);
    status(out, parts.status);
    if let Some(fields) = fields {
        let twice = |name| fields.map().contains_key(name);
        debug_assert!(!parts.headers.keys().any(twice), "a field is said twice");
        out.extend_from_slice(fields.text());
    }
    for (name, value) in &parts.headers {
        match *name {
            // What frames the body is ours to say, but of one that is not sent.
            CONTENT_LENGTH if framing != Framing::Silent => continue,
            TRANSFER_ENCODING | TRAILER => continue,
            CONNECTION => {
                said = true;
                closes |= is_close(value);
            }
            DATE => dated = true,
            _ => {}
        }
        field(out, name.as_str(), value.as_bytes());
    }
    if last && !said {
        field(out, "connection", b"close");
    }
    framing.write(out);
    if !dated {
        field(out, "date", &date());
    }
    out.extend_from_slice(b"\r\n");
    closes
}

fn status(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    let reason = status.canonical_reason().unwrap_or_default();
    for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn is_close(value: &HeaderValue) -> bool {
    let mut words = value.as_bytes().split(|byte| *byte == b',');
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Now, as a `Date` (RFC 9110 section 6.6.1); written anew each second.
fn date() -> [u8; 29] {
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
