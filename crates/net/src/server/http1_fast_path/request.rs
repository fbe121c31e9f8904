//! Parses the head of a plain request, which is a request that the fast path supports.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Uri, Version};

use super::response_head::ResponseOptions;
use crate::body::Incoming;
use crate::headers::take_map;

/// Limit on the header fields of a plain request. Players send about ten fields.
const FIELDS_MAX: usize = 32;

/// A plain request, parsed from the start of the received bytes.
pub(super) struct FastPathRequest {
    pub(super) request: Request<Incoming>,
    /// Length of the request's head in bytes.
    pub(super) len: usize,
    /// Whether the client wants the connection to close after the response.
    pub(super) closes: bool,
}

impl FastPathRequest {
    pub(super) fn response_options(&self) -> ResponseOptions {
        ResponseOptions {
            head: *self.request.method() == Method::HEAD,
            version: self.request.version(),
            last: self.closes,
        }
    }
}

/// Parses the request at the start of `bytes`. Returns `None` if its head is incomplete or the
/// request is not plain.
pub(super) fn parse_request(bytes: &[u8]) -> Option<FastPathRequest> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = parsed.parse(bytes) else {
        return None;
    };
    let method = match parsed.method? {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        _ => return None,
    };
    let version = match parsed.version? {
        0 => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    // An HTTP/1.0 connection closes unless the client requests keep-alive (RFC 9112 section 9.3).
    // The fast path does not support keep-alive in HTTP/1.0.
    let mut closes = version == Version::HTTP_10;
    let head = Bytes::copy_from_slice(bytes.get(..len)?);
    let shared = |part: &[u8]| {
        let from = part.as_ptr().addr() - bytes.as_ptr().addr();
        head.slice(from..from + part.len())
    };
    let mut map = take_map();
    for field in &*parsed.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if name == header::CONNECTION {
            match field.value {
                value if value.eq_ignore_ascii_case(b"close") => closes = true,
                value if value.eq_ignore_ascii_case(b"keep-alive") && !closes => {}
                _ => return None,
            }
        } else if !is_supported_field(&name) {
            return None;
        }
        map.append(
            name,
            HeaderValue::from_maybe_shared(shared(field.value)).ok()?,
        );
    }
    let mut request = Request::new(Incoming::default());
    *request.uri_mut() = Uri::from_maybe_shared(shared(parsed.path?.as_bytes())).ok()?;
    *request.method_mut() = method;
    *request.version_mut() = version;
    *request.headers_mut() = map;
    Some(FastPathRequest {
        request,
        len,
        closes,
    })
}

/// Returns whether the fast path supports a field. Unsupported fields announce a body or a change
/// of the protocol.
fn is_supported_field(name: &HeaderName) -> bool {
    !matches!(
        *name,
        header::CONTENT_LENGTH
            | header::EXPECT
            | header::TRAILER
            | header::TRANSFER_ENCODING
            | header::UPGRADE
    )
}
