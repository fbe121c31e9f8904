//! A request of the client, and its outcome.

use super::{
    ConnectionFreshness, ExpectedBody, FailureKind, MemorySink, RequestFailure, TransferProgress,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use url::Url;

/// One request.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// The method; `GET` by default.
    pub method: http::Method,
    /// The URL, with the scheme `http` or `https`.
    pub url: Url,
    /// Header fields of the request. The client adds missing default fields, such as `Host` and
    /// `User-Agent`.
    pub headers: HeaderMap,
    /// The request body.
    pub body: Bytes,
    /// Maximum length of the stored response body, in bytes. With 0, the body is counted and
    /// discarded.
    pub keep_max: usize,
    /// The expected properties of the response body.
    pub check: Option<ExpectedBody>,
    /// Time at which the request was scheduled. If `None`, the time of the call is used.
    pub due: Option<Instant>,
    /// Receives the progress of the response body, if requested.
    pub progress: Option<Arc<TransferProgress>>,
    /// Number of redirects that led to this request. They count towards
    /// [`ClientSettings::redirects_max`](super::ClientSettings::redirects_max).
    pub redirects: u32,
}

impl ClientRequest {
    /// Creates a `GET` request whose response body is discarded.
    pub fn new(url: Url) -> ClientRequest {
        ClientRequest {
            method: http::Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            keep_max: 0,
            check: None,
            due: None,
            progress: None,
            redirects: 0,
        }
    }

    /// Requests a byte range (RFC 9110, 14.2). An empty range does not change the request.
    pub fn with_range(mut self, range: Range<u64>) -> ClientRequest {
        if let Some(value) = range_value(&range) {
            self.headers.insert(header::RANGE, value);
        }
        self
    }

    /// Stores the response body. The request fails if the body is longer than `max` bytes.
    pub fn keep_body(mut self, max: usize) -> ClientRequest {
        self.keep_max = max;
        self
    }

    /// Changes the request to the request that follows a redirect with this status to `next`
    /// (RFC 9110, 15.4).
    pub(crate) fn follow_redirect(&mut self, status: u16, next: Url) {
        let becomes_get = match status {
            // For historical reasons, 301 and 302 change POST. They change no other method.
            301 | 302 => self.method == http::Method::POST,
            303 => !matches!(self.method, http::Method::GET | http::Method::HEAD),
            _ => false,
        };
        if becomes_get {
            self.method = http::Method::GET;
            self.body = Bytes::new();
            for name in [
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::CONTENT_LENGTH,
                header::CONTENT_LOCATION,
                header::CONTENT_TYPE,
            ] {
                self.headers.remove(name);
            }
        }
        if next.origin() != self.url.origin() {
            // These fields are for the first origin. Another origin must not receive them.
            for name in [
                header::AUTHORIZATION,
                header::COOKIE,
                header::HOST,
                header::PROXY_AUTHORIZATION,
            ] {
                self.headers.remove(name);
            }
        }
        self.url = next;
        self.redirects += 1;
    }

    /// Adds a header field. Returns false, and adds nothing, if the name or the value is invalid.
    pub fn add_header(&mut self, name: &str, value: &str) -> bool {
        let parsed = (name.parse::<http::HeaderName>(), value.parse());
        if let (Ok(name), Ok(value)) = parsed {
            self.headers.append(name, value);
            return true;
        }
        false
    }
}

/// Returns the value of the `Range` field that requests a byte range (RFC 9110, 14.2). Returns `None`
/// if the range is empty.
pub(crate) fn range_value(range: &Range<u64>) -> Option<HeaderValue> {
    let last = range
        .end
        .checked_sub(1)
        .filter(|last| *last >= range.start)?;
    format!("bytes={}-{last}", range.start).parse().ok()
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub struct RequestOutcome {
    /// Status of the response; 0 if no response was received. After redirects, the status of the
    /// last response.
    pub status: u16,
    /// Header fields of the response. Empty unless the body is stored or the status is 3xx.
    pub headers: HeaderMap,
    /// Body bytes received, without chunk framing.
    pub body_bytes: u64,
    /// The body, if it is stored.
    pub body: Vec<u8>,
    /// Time at which the request was scheduled.
    pub due: Instant,
    /// Time at which the request was sent. After redirects, the time at which the last request was
    /// sent. `None` if no request was sent.
    pub sent: Option<Instant>,
    /// Arrival time of the first response byte. After redirects, of the last response.
    pub first_byte: Option<Instant>,
    /// Arrival time of the last response byte, or time of the failure.
    pub last_byte: Instant,
    /// Kind of the failure; `None` if the request did not fail. A status of 400 or more does not
    /// count as a failure.
    pub fault: Option<FailureKind>,
    /// Details of the failure.
    pub detail: Option<Box<str>>,
    /// The final URL, after redirects.
    pub url: Url,
    /// Number of redirects followed.
    pub redirects: u32,
    /// Whether the connection was new or reused; `None` if the request got no connection.
    pub connection: Option<ConnectionFreshness>,
}

impl RequestOutcome {
    /// Creates the outcome of a request that has not been sent.
    pub(super) fn create_initial_outcome(request: &ClientRequest) -> RequestOutcome {
        let now = Instant::now();
        RequestOutcome {
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
            redirects: request.redirects,
            connection: None,
        }
    }

    /// Returns whether the request succeeded with a 2xx status.
    pub fn is_success(&self) -> bool {
        self.fault.is_none() && (200..300).contains(&self.status)
    }

    pub(super) fn record_failure(&mut self, failure: RequestFailure) {
        self.last_byte = Instant::now();
        self.fault = Some(failure.fault);
        self.detail = failure.detail;
    }

    pub(super) fn take_response_from_sink(&mut self, keep: MemorySink) {
        self.status = keep.status;
        self.headers = keep.headers;
        self.body = keep.body;
        self.body_bytes = keep.count;
    }
}
