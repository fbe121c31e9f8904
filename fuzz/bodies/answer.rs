//! No origin response can make the edge panic. The edge never sends a client the headers meant for
//! the connection to the origin, another body than it received, or a truncated body as a whole one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use http1::{HeadLimits, ResponseHead};
use net::Body;

use super::wire::{Message, bytes_sent_for};
use crate::block_layout::strong_etag;
use crate::cache_outcome::{CacheOutcome, PassReason};
use crate::cached_object::{CachedObject, vary_names};
use crate::deliver;
use crate::freshness::{
    CacheDirectives, ExchangeFacts, FreshnessPolicy, judge_reuse, judge_storage,
};

/// The first byte selects request headers. The rest is the origin's response.
pub fn run_case(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else {
        return;
    };
    let Some(came) = received(bytes) else {
        return;
    };
    let mut request = HeaderMap::new();
    if flags & 1 != 0 {
        request.insert(
            header::ORIGIN,
            HeaderValue::from_static("https://player.example"),
        );
    }
    relayed(&came);
    kept(&came, &request, *flags);
}

/// A response as received.
struct Came {
    status: StatusCode,
    headers: HeaderMap,
    len: Option<u64>,
    body: Vec<u8>,
    whole: bool,
}

/// Decodes the bytes as those of every origin are.
fn received(bytes: &[u8]) -> Option<Came> {
    let (head, mut headers, mut rest) = final_head(bytes)?;
    let (mut decoder, mut body) = (head.body, Vec::new());
    if matches!(decoder, http1::BodyDecoder::Chunked(_)) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let whole = loop {
        let Ok(data) = decoder.next_data(rest) else {
            break false;
        };
        body.extend_from_slice(&rest[data.clone()]);
        rest = &rest[data.end..];
        if data.is_empty() {
            break decoder.close().is_ok();
        }
    };
    Some(Came {
        status: StatusCode::from_u16(head.status).ok()?,
        headers,
        len: head.body.remaining(),
        body,
        whole,
    })
}

/// The first head that is not interim, and the bytes after it.
fn final_head(mut bytes: &[u8]) -> Option<(ResponseHead, HeaderMap, &[u8])> {
    loop {
        let parsed = ResponseHead::parse_with_headers(bytes, HeadLimits::default(), false);
        let (head, headers) = parsed.ok()??;
        bytes = &bytes[head.len..];
        if !head.is_interim() {
            // Such a response is refused where it is received.
            return (head.status != 101).then_some((head, headers, bytes));
        }
    }
}

/// Headers that the edge must not forward.
const ENDS_HERE: [&str; 8] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "surrogate-key",
    "x-named",
];

fn judged(written: &[u8], came: &Came, expected: &[u8], bodiless: bool) {
    if written.is_empty() {
        assert!(!came.whole, "nothing was sent");
        return;
    }
    let message = Message::parse(written);
    for name in ENDS_HERE {
        let named = name != "x-named" || names_it(&came.headers);
        assert!(!named || message.all(name).is_empty(), "{name} goes on");
    }
    if bodiless {
        assert!(message.rest.is_empty(), "{:?}", message.first);
        return;
    }
    match message.body() {
        Some(body) => assert!(came.whole && body == expected, "{:?}", message.first),
        None => assert!(!came.whole, "cut without a reason"),
    }
}

fn names_it(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',')
            .any(|name| name.trim().eq_ignore_ascii_case("x-named"))
    })
}

/// Checks the response forwarded to a single client.
fn relayed(came: &Came) {
    for method in [Method::GET, Method::HEAD] {
        let outcome = CacheOutcome::Pass(PassReason::Method);
        let (headers, bodiless) =
            deliver::relayed_headers(&method, came.status, &came.headers, outcome);
        let mut response = Response::new(if bodiless { Body::empty() } else { body(came) });
        *response.status_mut() = came.status;
        *response.headers_mut() = headers;
        let written = bytes_sent_for(response, method == Method::HEAD);
        judged(&written, came, &came.body, bodiless);
    }
}

fn body(came: &Came) -> Body {
    let cut = (!came.whole).then(|| Err(net::body::BodyCut::new("cut")));
    let data = Ok(Bytes::copy_from_slice(&came.body));
    let pieces = futures_util::stream::iter([data].into_iter().chain(cut));
    match came.len {
        Some(len) => Body::sized_stream(len, pieces),
        None => Body::unsized_stream(pieces),
    }
}

/// Checks the response cached for all clients, if it may be cached.
fn kept(came: &Came, request: &HeaderMap, flags: u8) {
    let asked = ExchangeFacts {
        method: &Method::GET,
        has_authorization: flags & 2 != 0,
        has_cookies: flags & 4 != 0,
        delay: Duration::from_millis(u64::from(flags)),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let Ok(lifetime) = judge_storage(
        &asked,
        came.status,
        &came.headers,
        now,
        &FreshnessPolicy::default(),
    ) else {
        return;
    };
    let said = CacheDirectives::from_response(&came.headers);
    assert!(!said.private && (!said.no_store || said.must_understand));
    assert!(!came.headers.contains_key(header::SET_COOKIE));
    if let Some(etag) = strong_etag(&came.headers) {
        assert!(etag.starts_with('"'));
    }
    let object = CachedObject::new(came.status, &came.headers, lifetime, came.len, request);
    let names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
    assert!(object.matches_request(request) && vary_names(&object.headers) == names);
    judge_reuse(
        &lifetime,
        Duration::from_secs(u64::from(flags)),
        &CacheDirectives::default(),
    );
    object.body.growing.push(Bytes::copy_from_slice(&came.body));
    if came.whole {
        object.body.complete_with(false);
    } else {
        object.body.fail("cut");
    }
    let confirmed = object.merge_304(&came.headers, lifetime, request);
    assert_eq!(confirmed.status, object.status);
    assert!(confirmed.matches_request(request));
    assert!(!confirmed.headers.contains_key(header::CONTENT_LENGTH));
    for object in [object, confirmed].map(Arc::new) {
        for range in [None, Some("bytes=0-0"), Some("bytes=-1")] {
            delivered(came, &object, range);
        }
    }
}

fn delivered(came: &Came, object: &Arc<CachedObject>, range: Option<&'static str>) {
    let mut request = HeaderMap::new();
    if let Some(range) = range {
        request.insert(header::RANGE, HeaderValue::from_static(range));
    }
    for method in [Method::GET, Method::HEAD] {
        let response =
            deliver::respond_with_object(&method, &request, object, CacheOutcome::Hit, None);
        let response = response.expect("its first bytes are here");
        let status = response.status();
        let head = method == Method::HEAD;
        let bodiless = head || matches!(status.as_u16(), 204 | 304);
        let written = bytes_sent_for(response, head);
        let last = came.body.len().saturating_sub(1);
        match (status, range) {
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {}
            // The requested range may be present while the rest is missing.
            (StatusCode::PARTIAL_CONTENT, _) if !came.whole => {}
            (StatusCode::PARTIAL_CONTENT, Some("bytes=0-0")) => {
                judged(&written, came, &came.body[..1], bodiless);
            }
            (StatusCode::PARTIAL_CONTENT, _) => {
                judged(&written, came, &came.body[last..], bodiless);
            }
            _ => judged(&written, came, &came.body, bodiless),
        }
    }
}
