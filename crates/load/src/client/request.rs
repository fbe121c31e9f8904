//! What is asked, and how it went.

use super::{Check, Failure, Fault, Keep};
use bytes::Bytes;
use http::HeaderMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use url::Url;

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method; `GET` unless said otherwise.
    pub method: http::Method,
    /// Where to; `http` or `https`.
    pub url: Url,
    /// Fields of the head, beside those the client adds (`Host`, `User-Agent`, `Content-Length`).
    pub headers: HeaderMap,
    /// The body that is sent.
    pub body: Bytes,
    /// Longest body that is kept, in bytes; 0: it is counted and discarded.
    pub keep_max: usize,
    /// What the answer's body should be.
    pub check: Option<Check>,
    /// When it should have started; none: now.
    pub due: Option<Instant>,
}

impl Request {
    /// A `GET` whose body is discarded.
    pub fn new(url: Url) -> Request {
        Request {
            method: http::Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            keep_max: 0,
            check: None,
            due: None,
        }
    }

    /// Asks for these bytes of the body (RFC 9110, 14.2); an empty range asks for nothing special.
    pub fn range(mut self, range: Range<u64>) -> Request {
        if let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) {
            let text = format!("bytes={}-{last}", range.start);
            if let Ok(value) = text.parse() {
                self.headers.insert(http::header::RANGE, value);
            }
        }
        self
    }

    /// Keeps the body, up to so many bytes; a longer one is a fault.
    pub fn keep(mut self, max: usize) -> Request {
        self.keep_max = max;
        self
    }

    /// Adds a field. One that cannot be sent is left out: false.
    pub fn header(&mut self, name: &str, value: &str) -> bool {
        let parsed = (name.parse::<http::HeaderName>(), value.parse());
        if let (Ok(name), Ok(value)) = parsed {
            self.headers.append(name, value);
            return true;
        }
        false
    }
}

/// Whether a connection had served a request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It was made for this request.
    New,
    /// It was kept.
    Kept,
}

/// How a request went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The answer's status; 0 where there was none.
    pub status: u16,
    /// The answer's fields; only where the body is kept.
    pub headers: HeaderMap,
    /// Bytes of the body that came, without framing.
    pub body_bytes: u64,
    /// The body, where it is kept.
    pub body: Vec<u8>,
    /// When it should have started.
    pub due: Instant,
    /// When it was sent (the last time, where there were redirects); none: it never was.
    pub sent: Option<Instant>,
    /// When the first byte of the answer came.
    pub first_byte: Option<Instant>,
    /// When the last byte came, or when it failed.
    pub last_byte: Instant,
    /// How it failed, if it did. A status of 400 and more is no failure of this kind.
    pub fault: Option<Fault>,
    /// What else is known of the failure.
    pub detail: Option<Box<str>>,
    /// Where it ended, after redirects.
    pub url: Url,
    /// Redirects that were followed.
    pub redirects: u32,
    /// Whether the connection was new; none: there was none.
    pub connection: Option<Reuse>,
}

impl Outcome {
    /// A request that has not been sent yet.
    pub(super) fn begin(request: &Request) -> Outcome {
        let now = Instant::now();
        Outcome {
            status: 0,
            headers: HeaderMap::new(),
            body_bytes: 0,
            body: Vec::new(),
            due: request.due.unwrap_or(now),
            sent: None,
            first_byte: None,
            last_byte: now,
            fault: None,
            detail: None,
            url: request.url.clone(),
            redirects: 0,
            connection: None,
        }
    }

    /// A status of success, and no fault.
    pub fn ok(&self) -> bool {
        self.fault.is_none() && (200..300).contains(&self.status)
    }

    /// From when it was due to its last byte.
    pub fn latency_from_due(&self) -> Duration {
        self.last_byte.saturating_duration_since(self.due)
    }

    /// From when it was sent to its last byte.
    pub fn latency_from_sent(&self) -> Option<Duration> {
        Some(self.last_byte.saturating_duration_since(self.sent?))
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.last_byte = Instant::now();
        self.fault = Some(failure.fault);
        self.detail = failure.detail;
    }

    pub(super) fn took(&mut self, keep: Keep) {
        self.headers = keep.headers;
        self.body = keep.body;
        self.body_bytes = keep.count;
    }
}
