//! Which headers go on, and which end here (RFC 9110 section 7.6).

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};
use net::record::{CHARS_MAX, REQUEST_ID};

use crate::reason::NAME;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// RFC 8586: who has passed a request on already.
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// RFC 9211.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Names of groups that an answer can be purged by, separated by spaces.
pub const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

/// Meant for the next hop only.
const HOP_BY_HOP: [HeaderName; 9] = [
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

/// What an origin is told of a request whose answer may be kept: only what is known. A header that
/// is neither here nor in the key could otherwise make an answer that all others are given. What is
/// here and not in the key either, origins say by Vary, or we see it in the answer
/// ([`crate::object::varying`]).
static KNOWN: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
];

/// What clients say about whom they speak for; only those whom we trust may.
const CLAIMS: [&str; 8] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
    "x-original-url",
    "x-rewrite-url",
];

/// All but what ends here: hop-by-hop, and what `Connection` names.
pub fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<&str> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len() + 4);
    for (name, value) in headers {
        let named = named.iter().any(|n| n.eq_ignore_ascii_case(name.as_str()));
        if !named && !HOP_BY_HOP.contains(name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The headers of a request that can make a difference to an answer that may be kept; `also` are
/// names that the operator adds.
pub fn heard(also: &[HeaderName]) -> impl Iterator<Item = &HeaderName> {
    let added = also.iter().filter(|name| !KNOWN.contains(name));
    KNOWN.iter().chain(added)
}

/// A request's headers for an answer that may be kept.
pub fn to_keep(request: &HeaderMap, also: &[HeaderName]) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(16);
    for name in heard(also) {
        for value in request.get_all(name) {
            kept.append(name.clone(), value.clone());
        }
    }
    // It makes no difference to an answer, unless it is so long that it is refused: others would share
    // that. What records keep of it is enough.
    let id = request.get(&REQUEST_ID);
    if let Some(id) = id.filter(|id| id.len() <= CHARS_MAX) {
        kept.insert(REQUEST_ID, id.clone());
    }
    // Who fetches is this edge, for whoever asks.
    let ours = || HeaderValue::from_static(NAME);
    kept.entry(header::USER_AGENT).or_insert_with(ours);
    kept
}

/// A request's headers for an answer that is for this client alone.
pub fn to_pass(request: &HeaderMap) -> HeaderMap {
    let mut kept = end_to_end(request);
    for name in CLAIMS {
        kept.remove(name);
    }
    for name in OF_MESSAGE {
        kept.remove(name);
    }
    let disguised: Vec<HeaderName> = kept.keys().filter(|n| is_disguised(n)).cloned().collect();
    for name in disguised {
        kept.remove(name);
    }
    kept
}

/// Said anew by whoever sends a message.
const OF_MESSAGE: [HeaderName; 3] = [header::CONTENT_LENGTH, header::EXPECT, header::HOST];

/// `Transfer_Encoding` and its like: servers that give headers to programs as variables take an
/// underscore for a dash.
fn is_disguised(name: &HeaderName) -> bool {
    let plain = name.as_str().replace('_', "-");
    plain != name.as_str()
        && (HOP_BY_HOP
            .iter()
            .chain(&OF_MESSAGE)
            .any(|n| n.as_str() == plain)
            || CLAIMS.contains(&plain.as_str()))
}

/// Says to the next hop that we were here.
pub fn sign(headers: &mut HeaderMap, instance: &HeaderValue) {
    headers.append(header::VIA, HeaderValue::from_static("1.1 headwater"));
    headers.append(CDN_LOOP, instance.clone());
}

/// Whether this very process has passed the request on before.
pub fn is_loop(headers: &HeaderMap, instance: &HeaderValue) -> bool {
    let ours = instance.to_str().unwrap_or(NAME);
    headers
        .get_all(CDN_LOOP)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|member| member.split(';').next().unwrap_or_default().trim() == ours)
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
    fn what_connection_names_ends_here() {
        let kept = end_to_end(&map(&[
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
    fn a_name_too_long_for_an_origin_spoils_no_answer_that_others_share() {
        for (long, kept) in [(CHARS_MAX, true), (CHARS_MAX + 1, false)] {
            let name = "x".repeat(long);
            let request = map(&[("x-request-id", &name), ("x-request-id", "second")]);
            let ids: Vec<_> = to_keep(&request, &[])
                .get_all(REQUEST_ID)
                .iter()
                .map(|id| id.len())
                .collect();
            assert_eq!(ids, if kept { vec![long] } else { vec![] });
        }
    }

    #[test]
    fn nothing_unknown_reaches_an_origin_whose_answer_is_kept() {
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
        let kept = to_keep(&request, &[]);
        assert_eq!(kept.len(), 3);
        assert_eq!(kept["user-agent"], "headwater");
        let also = [
            "x-tenant".parse().unwrap(),
            header::ACCEPT,
            header::USER_AGENT,
        ];
        let also = to_keep(&request, &also);
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
        let passed = to_pass(&request);
        assert!(
            passed.contains_key("x_tenant") && passed.len() == 7,
            "{passed:?}"
        );
        assert!(passed.contains_key("range") && !passed.contains_key("x-forwarded-host"));
    }

    #[test]
    fn a_request_that_was_here_is_known_again() {
        let instance = HeaderValue::from_static("headwater-1");
        let mut headers = map(&[("cdn-loop", "other; x=1")]);
        assert!(!is_loop(&headers, &instance));
        sign(&mut headers, &instance);
        assert!(is_loop(&headers, &instance));
    }
}
