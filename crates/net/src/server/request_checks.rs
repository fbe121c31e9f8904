//! Checks requests after the parser has accepted them and before they reach a handler.

use http::header::{HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Uri, Version};

/// Returns whether the request has a transfer coding. Compares all field names, because most
/// requests have no transfer coding and a look-up in the map would cost more.
pub(super) fn is_chunked(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| *name == TRANSFER_ENCODING)
}

/// Returns whether the request has a transfer coding other than `chunked` (RFC 9112 section 6.1).
/// The parser has already checked that `chunked` is the last transfer coding.
pub(super) fn has_unsupported_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    codings.next().is_some_and(|first| !is_chunked(first)) || codings.next().is_some()
}

/// Finds an error in a request that the parser has accepted (RFC 9112 section 3.2, RFC 9113 section
/// 8.3.1).
pub(super) fn find_malformation<B>(request: &Request<B>) -> Option<&'static str> {
    let (version, uri, headers) = (request.version(), request.uri(), request.headers());
    // Only CONNECT may have an authority as its target instead of a path.
    if uri.authority().is_some() && uri.scheme().is_none() && *request.method() != Method::CONNECT {
        return Some("the request target must be a path");
    }
    let Some(host) = headers.get(HOST) else {
        return (version == Version::HTTP_11).then_some("the request has no Host");
    };
    // Few requests repeat a field, so the second look-up of Host is rarely necessary.
    let repeats_fields = headers.len() > headers.keys_len();
    if repeats_fields && headers.get_all(HOST).iter().nth(1).is_some() {
        Some("the request has more than one Host")
    } else if !host.as_bytes().iter().all(is_host_byte) {
        Some("the request has an invalid Host")
    } else if version >= Version::HTTP_2 && !is_same_host(uri, host) {
        // This check does not apply to HTTP/1.1, where an absolute target replaces the Host.
        Some("the request has a Host that differs from :authority")
    } else {
        None
    }
}

/// Returns whether the Host equals the authority of the request. Hosts are case-insensitive, and
/// the default port may be omitted.
fn is_same_host(uri: &Uri, host: &HeaderValue) -> bool {
    let port = match uri.scheme_str() {
        Some("http") => ":80",
        _ => ":443",
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let without_port = |host| str::strip_suffix(host, port).unwrap_or(host);
    host.to_str().is_ok_and(|host| {
        authority.is_empty() || without_port(host).eq_ignore_ascii_case(without_port(authority))
    })
}

/// Returns whether the byte may occur in a host and a port (RFC 3986 section 3.2.2).
fn is_host_byte(byte: &u8) -> bool {
    matches!(
        byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'!' | b';' | b'='
        // `$%&'()*+,`
        | b'$'..=b',' | b'[' | b']' | b':'
    )
}
