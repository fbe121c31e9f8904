//! The headers that the edge forwards, and the headers that the edge removes (RFC 9110 section
//! 7.6).

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use net::access_token::TIMING_TOKEN;
use net::edge_secret::EDGE_AUTH;
use net::record::{CHARS_MAX, REQUEST_ID};
use trace::{OpenSpan, SpanKind, TraceContext};

use crate::cache_outcome::NAME;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// Header with the names of the CDNs that forwarded a request (RFC 8586).
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// Header that reports how each cache handled the request (RFC 9211).
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Header with the tags of a response for purging, separated by spaces.
pub const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

/// Headers that are only for the next hop.
const HOP_BY_HOP: [HeaderName; 11] = [
    EDGE_AUTH,
    TIMING_TOKEN,
    header::CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Request headers that are forwarded to the origin with a request whose response may be stored.
/// Other headers are not part of the cache key, so they could poison the shared response if they
/// were forwarded. If the response depends on a forwarded header, the origin has to list the header
/// in Vary. For some headers, the edge infers the dependence from the response
/// ([`crate::cached_object::vary_names`]).
static FORWARDED_HEADERS: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
];

/// Headers in which proxies describe the original client. Clients could forge these headers, so the
/// edge does not forward them.
const FORWARDING_CLAIMS: [&str; 8] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
    "x-original-url",
    "x-rewrite-url",
];

/// Returns all headers except hop-by-hop headers and the headers that `Connection` lists.
pub fn end_to_end_headers(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<&str> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .collect();
    let mut end_to_end = HeaderMap::with_capacity(headers.len() + 4);
    for (name, value) in headers {
        let named = named.iter().any(|n| n.eq_ignore_ascii_case(name.as_str()));
        if !named && !HOP_BY_HOP.contains(name) {
            end_to_end.append(name.clone(), value.clone());
        }
    }
    end_to_end
}

/// Returns the headers of an interim response for the client. A 102 is relayed without headers.
/// Returns `None` for statuses that are not relayed.
pub fn interim_headers(status: StatusCode, headers: &HeaderMap) -> Option<HeaderMap> {
    match status.as_u16() {
        102 => Some(HeaderMap::new()),
        103 => {
            let mut headers = end_to_end_headers(headers);
            headers.remove(SURROGATE_KEY);
            headers.remove(header::CONTENT_LENGTH);
            Some(headers)
        }
        _ => None,
    }
}

/// Returns the names of forwarded request headers that may affect a cacheable response. `also`
/// contains the operator's additions.
pub fn cacheable_request_header_names(also: &[HeaderName]) -> impl Iterator<Item = &HeaderName> {
    let added = also.iter().filter(|name| !FORWARDED_HEADERS.contains(name));
    FORWARDED_HEADERS.iter().chain(added)
}

/// Returns the headers to send to the origin in a request whose response may be cached.
pub fn cacheable_request_headers(request: &HeaderMap, also: &[HeaderName]) -> HeaderMap {
    let mut forwarded = HeaderMap::with_capacity(16);
    for name in cacheable_request_header_names(also) {
        for value in request.get_all(name) {
            forwarded.append(name.clone(), value.clone());
        }
    }
    // The request id affects a response only if it is so long that the origin rejects the request.
    // All waiting requests would share this error. Therefore an id that is too long for a record is
    // not forwarded.
    let id = request.get(&REQUEST_ID);
    if let Some(id) = id.filter(|id| id.len() <= CHARS_MAX) {
        forwarded.insert(REQUEST_ID, id.clone());
    }
    // The response of a shared fetch is for many clients, so the edge sends its own name as the
    // user agent.
    let edge_agent = || HeaderValue::from_static(NAME);
    forwarded
        .entry(header::USER_AGENT)
        .or_insert_with(edge_agent);
    forwarded
}

/// Returns the headers to send to the origin in a passed request, whose response is for this client
/// alone.
pub fn passed_request_headers(request: &HeaderMap) -> HeaderMap {
    let mut forwarded = end_to_end_headers(request);
    for name in FORWARDING_CLAIMS {
        forwarded.remove(name);
    }
    for name in PER_MESSAGE {
        forwarded.remove(name);
    }
    let disguised: Vec<HeaderName> = forwarded
        .keys()
        .filter(|n| is_disguised_header(n))
        .cloned()
        .collect();
    for name in disguised {
        forwarded.remove(name);
    }
    forwarded
}

/// Headers that each sender of a message writes itself.
const PER_MESSAGE: [HeaderName; 3] = [header::CONTENT_LENGTH, header::EXPECT, header::HOST];

/// Returns whether a name with `_`, such as `Transfer_Encoding`, imitates a header that is not
/// forwarded (`Transfer-Encoding`). CGI-like servers do not distinguish `_` and `-`.
fn is_disguised_header(name: &HeaderName) -> bool {
    let plain = name.as_str().replace('_', "-");
    plain != name.as_str()
        && (HOP_BY_HOP
            .iter()
            .chain(&PER_MESSAGE)
            .any(|n| n.as_str() == plain)
            || FORWARDING_CLAIMS.contains(&plain.as_str()))
}

/// Adds the edge to `Via` and `CDN-Loop`.
pub fn add_via_and_loop(headers: &mut HeaderMap, instance: &HeaderValue) {
    headers.append(header::VIA, HeaderValue::from_static("1.1 headwater"));
    headers.append(CDN_LOOP, instance.clone());
}

/// Returns whether this process has forwarded the request before.
pub fn has_looped(headers: &HeaderMap, instance: &HeaderValue) -> bool {
    // Compares the names one by one. A look-up would hash `cdn-loop` for each request, because the
    // `http` crate does not predefine this name.
    if !headers.keys().any(|name| *name == CDN_LOOP) {
        return false;
    }
    let own_id = instance.to_str().unwrap_or(NAME);
    headers
        .get_all(CDN_LOOP)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|member| member.split(';').next().unwrap_or_default().trim() == own_id)
}

/// Starts a span for the request to the origin if the client's request is traced. Adds the span's
/// context to `headers` as `traceparent`.
pub fn start_fetch_span(headers: &mut HeaderMap) -> Option<OpenSpan> {
    let span = trace::start_span("edge.fetch", SpanKind::Client)?;
    if let Some(traceparent) = span.context().and_then(TraceContext::to_header) {
        headers.insert(trace::TRACEPARENT, traceparent);
    }
    Some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn headers_named_by_connection_are_removed() {
        let kept = end_to_end_headers(&map(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "5"),
            ("transfer-encoding", "chunked"),
            ("x-kept", "2"),
        ]));
        assert_eq!(
            kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["x-kept"]
        );
    }

    #[test]
    fn a_too_long_request_id_is_not_forwarded() {
        for (long, kept) in [(CHARS_MAX, true), (CHARS_MAX + 1, false)] {
            let name = "x".repeat(long);
            let request = map(&[("x-request-id", &name), ("x-request-id", "second")]);
            let ids: Vec<_> = cacheable_request_headers(&request, &[])
                .get_all(REQUEST_ID)
                .iter()
                .map(|id| id.len())
                .collect();
            assert_eq!(ids, if kept { vec![long] } else { vec![] });
        }
    }

    #[test]
    fn cacheable_requests_forward_only_listed_headers() {
        let request = map(&[
            ("x-forwarded-host", "evil"),
            ("x-original-url", "/admin"),
            ("accept", "a"),
            ("accept", "b"),
            ("range", "bytes=0-1"),
            ("if-none-match", "\"a\""),
            ("x-tenant", "t"),
            ("user-agent", "player"),
        ]);
        let kept = cacheable_request_headers(&request, &[]);
        assert_eq!(kept.len(), 3);
        assert_eq!(kept["user-agent"], "headwater");
        let also = [
            "x-tenant".parse().unwrap(),
            header::ACCEPT,
            header::USER_AGENT,
        ];
        let also = cacheable_request_headers(&request, &also);
        assert_eq!(also["x-tenant"], "t");
        assert_eq!(also["user-agent"], "player");
        assert_eq!(also.len(), 4, "{also:?}");
        let mut request = request;
        for name in [
            "transfer_encoding",
            "content_length",
            "x_forwarded-for",
            "x_tenant",
        ] {
            request.insert(name, "1".parse().unwrap());
        }
        let passed = passed_request_headers(&request);
        assert!(
            passed.contains_key("x_tenant") && passed.len() == 7,
            "{passed:?}"
        );
        assert!(passed.contains_key("range") && !passed.contains_key("x-forwarded-host"));
    }

    #[test]
    fn a_forwarding_loop_is_detected() {
        let instance = HeaderValue::from_static("headwater-1");
        let mut headers = map(&[("cdn-loop", "other; x=1")]);
        assert!(!has_looped(&headers, &instance));
        add_via_and_loop(&mut headers, &instance);
        assert!(has_looped(&headers, &instance));
    }
}
