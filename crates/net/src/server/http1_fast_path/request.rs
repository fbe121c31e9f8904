//! Parsing the head of a plain request.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

use crate::body::Incoming;
use crate::headers::take_map;

/// The most header fields; players send about ten.
const FIELDS_MAX: usize = 32;

/// Parses the request at the start of `bytes`. Returns it with its length, if it is complete and
/// plain.
pub(crate) fn parse_request(bytes: &[u8]) -> Option<(Request<Incoming>, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = parsed.parse(bytes) else {
        return None;
    };
    let method = match (parsed.method?, parsed.version?) {
        ("GET", 1) => Method::GET,
        ("HEAD", 1) => Method::HEAD,
        _ => return None,
    };
    let head = Bytes::copy_from_slice(bytes.get(..len)?);
    let shared = |part: &[u8]| {
        let from = part.as_ptr().addr() - bytes.as_ptr().addr();
        head.slice(from..from + part.len())
    };
    let mut map = take_map();
    for field in &*parsed.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if !is_plain(&name, field.value) {
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
    *request.headers_mut() = map;
    Some((request, len))
}

/// Returns whether a field neither changes the connection nor announces a body.
fn is_plain(name: &HeaderName, value: &[u8]) -> bool {
    match *name {
        header::CONNECTION => value.eq_ignore_ascii_case(b"keep-alive"),
        header::CONTENT_LENGTH
        | header::EXPECT
        | header::TRAILER
        | header::TRANSFER_ENCODING
        | header::UPGRADE => false,
        _ => true,
    }
}
