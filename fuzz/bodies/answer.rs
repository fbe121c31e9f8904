//! Checks that no origin response makes the edge panic. The edge must never forward hop-by-hop
//! headers or a changed body, and must never forward a truncated body as a complete body.

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
    CacheDirectives, FreshnessPolicy, StorageFacts, judge_reuse, judge_storage,
};

/// The first byte selects headers and other properties of the request. The rest is the origin's
/// response.
pub fn run_case(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else {
        return;
    };
    let Some(received) = decode_response(bytes) else {
        return;
    };
    let mut request = HeaderMap::new();
    if flags & 1 != 0 {
        request.insert(
            header::ORIGIN,
            HeaderValue::from_static("https://player.example"),
        );
    }
    check_relayed(&received);
    check_cached(&received, &request, *flags);
}

/// A decoded origin response.
struct ReceivedResponse {
    status: StatusCode,
    headers: HeaderMap,
    len: Option<u64>,
    body: Vec<u8>,
    whole: bool,
}

/// Decodes the bytes as the edge decodes every origin response.
fn decode_response(bytes: &[u8]) -> Option<ReceivedResponse> {
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
            break decoder.decode_eof().is_ok();
        }
    };
    Some(ReceivedResponse {
        status: StatusCode::from_u16(head.status).ok()?,
        headers,
        len: head.body.remaining(),
        body,
        whole,
    })
}

/// Returns the first head that is not interim, and the bytes after this head.
fn final_head(mut bytes: &[u8]) -> Option<(ResponseHead, HeaderMap, &[u8])> {
    loop {
        let parsed = ResponseHead::parse_to_map(bytes, HeadLimits::default(), false);
        let (head, headers) = parsed.ok()??;
        bytes = &bytes[head.len..];
        if !head.is_interim() {
            // Refuses 101, as the code that receives responses does.
            return (head.status != 101).then_some((head, headers, bytes));
        }
    }
}

/// Headers that the edge must not forward.
const NOT_FORWARDED: [&str; 8] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "surrogate-key",
    "x-named",
];

fn check_written(written: &[u8], received: &ReceivedResponse, expected: &[u8], bodiless: bool) {
    if written.is_empty() {
        assert!(!received.whole, "nothing was sent for a complete response");
        return;
    }
    let message = Message::parse(written);
    for name in NOT_FORWARDED {
        let named = name != "x-named" || connection_names_it(&received.headers);
        assert!(
            !named || message.all(name).is_empty(),
            "{name} is forwarded"
        );
    }
    if bodiless {
        assert!(message.rest.is_empty(), "{:?}", message.first);
        return;
    }
    match message.body() {
        Some(body) => assert!(received.whole && body == expected, "{:?}", message.first),
        None => assert!(!received.whole, "a complete body was truncated"),
    }
}

fn connection_names_it(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',')
            .any(|name| name.trim().eq_ignore_ascii_case("x-named"))
    })
}

/// Checks the response that the edge forwards to a single client.
fn check_relayed(received: &ReceivedResponse) {
    for method in [Method::GET, Method::HEAD] {
        let outcome = CacheOutcome::Pass(PassReason::Method);
        let (headers, bodiless) =
            deliver::relayed_headers(&method, received.status, &received.headers, outcome);
        let mut response = Response::new(if bodiless {
            Body::empty()
        } else {
            body(received)
        });
        *response.status_mut() = received.status;
        *response.headers_mut() = headers;
        let written = bytes_sent_for(response, method == Method::HEAD);
        check_written(&written, received, &received.body, bodiless);
    }
}

fn body(received: &ReceivedResponse) -> Body {
    let cut = (!received.whole).then(|| Err(net::body::BodyError::new("cut")));
    let data = Ok(Bytes::copy_from_slice(&received.body));
    let pieces = futures_util::stream::iter([data].into_iter().chain(cut));
    match received.len {
        Some(len) => Body::sized_stream(len, pieces),
        None => Body::unsized_stream(pieces),
    }
}

/// Checks the responses from the cache, if the origin response may be cached.
fn check_cached(received: &ReceivedResponse, request: &HeaderMap, flags: u8) {
    let facts = StorageFacts {
        method: &Method::GET,
        has_authorization: flags & 2 != 0,
        has_cookies: flags & 4 != 0,
        delay: Duration::from_millis(u64::from(flags)),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let Ok(lifetime) = judge_storage(
        &facts,
        received.status,
        &received.headers,
        now,
        &FreshnessPolicy::default(),
    ) else {
        return;
    };
    let directives = CacheDirectives::from_response(&received.headers);
    assert!(!directives.private && (!directives.no_store || directives.must_understand));
    assert!(!received.headers.contains_key(header::SET_COOKIE));
    if let Some(etag) = strong_etag(&received.headers) {
        assert!(etag.starts_with('"'));
    }
    let object = CachedObject::new(
        received.status,
        &received.headers,
        lifetime,
        received.len,
        request,
    );
    let names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
    assert!(object.matches_request(request) && vary_names(&object.headers) == names);
    judge_reuse(
        &lifetime,
        Duration::from_secs(u64::from(flags)),
        &CacheDirectives::default(),
    );
    object
        .body
        .growing
        .append_bytes(Bytes::copy_from_slice(&received.body));
    if received.whole {
        object.body.mark_complete(false);
    } else {
        object.body.end_with_error("cut");
    }
    let revalidated = object.merge_304(&received.headers, lifetime, request);
    assert_eq!(revalidated.status, object.status);
    assert!(revalidated.matches_request(request));
    assert!(!revalidated.headers.contains_key(header::CONTENT_LENGTH));
    for object in [object, revalidated].map(Arc::new) {
        for range in [None, Some("bytes=0-0"), Some("bytes=-1")] {
            check_delivered(received, &object, range);
        }
    }
}

fn check_delivered(
    received: &ReceivedResponse,
    object: &Arc<CachedObject>,
    range: Option<&'static str>,
) {
    let mut request = HeaderMap::new();
    if let Some(range) = range {
        request.insert(header::RANGE, HeaderValue::from_static(range));
    }
    for method in [Method::GET, Method::HEAD] {
        let response =
            deliver::respond_with_object(&method, &request, object, CacheOutcome::Hit, None);
        let response = response.expect("a cached object can be delivered");
        let status = response.status();
        let head = method == Method::HEAD;
        let bodiless = head || matches!(status.as_u16(), 204 | 304);
        let written = bytes_sent_for(response, head);
        let last = received.body.len().saturating_sub(1);
        match (status, range) {
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {}
            // The requested range may be complete although the body is truncated.
            (StatusCode::PARTIAL_CONTENT, _) if !received.whole => {}
            (StatusCode::PARTIAL_CONTENT, Some("bytes=0-0")) => {
                check_written(&written, received, &received.body[..1], bodiless);
            }
            (StatusCode::PARTIAL_CONTENT, _) => {
                check_written(&written, received, &received.body[last..], bodiless);
            }
            _ => check_written(&written, received, &received.body, bodiless),
        }
    }
}
