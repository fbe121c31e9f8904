//! Builds responses from cached objects and from responses of the origin. Evaluates conditions and
//! ranges, and adds the edge's headers.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, try_unfold};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use net::body::BodyError;
use net::conditional::evaluate_conditions;
use net::range::{self, Multipart, RequestedRanges};
use net::{Body, Error};
use store::planted_bugs::is_bug_planted;

use crate::blocks::BlockBody;
use crate::cache_outcome::CacheOutcome;
use crate::cached_object::CachedObject;
use crate::headers::{CACHE_STATUS, SURROGATE_KEY, end_to_end_headers};
use crate::origins::OriginResponse;

/// Builds the response to a request from an object. A body that is still being received is sent as
/// its bytes arrive. Returns `None` if the response needs bytes that have already been discarded.
/// Bytes are discarded only from a body that will not be stored.
pub fn respond_with_object(
    method: &Method,
    request: &HeaderMap,
    object: &Arc<CachedObject>,
    outcome: CacheOutcome,
    blocks: Option<BlockBody>,
) -> Option<Response<Body>> {
    let response = match evaluate_preconditions(method, request, object) {
        Some(status) => respond_to_precondition(object, status, outcome),
        None => respond_with_requested_ranges(method, request, object, outcome, blocks)?,
    };
    object.use_count.fetch_add(1, Relaxed);
    Some(response)
}

/// Returns the headers of a response that is built from an object. The headers of a hit change only
/// once per second, when Age changes. The prepared headers are stored and reused until then.
fn response_headers(object: &CachedObject, outcome: CacheOutcome) -> HeaderMap {
    let age_s = object.age_s();
    if outcome != CacheOutcome::Hit {
        return build_object_headers(object, age_s, outcome);
    }
    match &*object.hit_headers.load() {
        Some(prepared) if prepared.0 == age_s => prepared.1.clone(),
        _ => {
            let headers = build_object_headers(object, age_s, outcome);
            let prepared = Arc::new((age_s, headers.clone()));
            object.hit_headers.store(Some(prepared));
            headers
        }
    }
}

fn build_object_headers(object: &CachedObject, age_s: u64, outcome: CacheOutcome) -> HeaderMap {
    let mut headers = object.headers.clone();
    add_cache_headers(&mut headers, object, age_s, outcome);
    headers
}

/// Adds Age, Via and Cache-Status.
fn add_cache_headers(
    headers: &mut HeaderMap,
    object: &CachedObject,
    age_s: u64,
    outcome: CacheOutcome,
) {
    let contacted_origin = matches!(
        outcome,
        CacheOutcome::Miss(..) | CacheOutcome::Revalidated(..)
    );
    // On a miss, Age is sent only if it is above zero. The Age of a miss is above zero if, for
    // example, a cache between the origin and the edge sent the response.
    if age_s > 0 || !matches!(outcome, CacheOutcome::Miss(..)) {
        headers.insert(header::AGE, age_s.into());
    }
    let status = match outcome {
        CacheOutcome::Revalidated(..) => 304,
        _ => object.status.as_u16(),
    };
    let ttl_s = Some(object.ttl_at_age(age_s));
    add_via_and_cache_status(headers, outcome, ttl_s, contacted_origin.then_some(status));
}

/// Returns the offset of the first body byte that a request needs. Returns `None` if the request
/// needs no body, or if the object's length is unknown.
pub fn requested_body_start(
    method: &Method,
    request: &HeaderMap,
    object: &CachedObject,
) -> Option<u64> {
    if method != Method::GET || evaluate_preconditions(method, request, object).is_some() {
        return None;
    }
    match range::requested_ranges(method, request, &object.validators, object.len()?) {
        RequestedRanges::Unsatisfiable => None,
        RequestedRanges::Ranges(ranges) if ranges.len() == 1 => {
            ranges.first().map(|range| range.start)
        }
        _ => Some(0),
    }
}

/// Relays a response of the origin to one client, without the cache.
pub fn relay_response(
    method: &Method,
    reply: OriginResponse,
    outcome: CacheOutcome,
) -> Response<Body> {
    let origin_response = reply.response;
    let (status, len) = (origin_response.status, origin_response.remaining());
    let (headers, bodiless) = relayed_headers(method, status, &origin_response.headers, outcome);
    let body = if bodiless {
        Body::empty()
    } else {
        let pieces = try_unfold(origin_response, |mut origin_response| async {
            let piece = origin_response.next_data().await.map_err(BodyError::new)?;
            Ok::<_, BodyError>(piece.map(|piece| (piece, origin_response)))
        });
        match len {
            Some(len) => Body::sized_stream(len, pieces),
            None => Body::unsized_stream(pieces),
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns the headers of a relayed response, and whether the response has no body.
pub fn relayed_headers(
    method: &Method,
    status: StatusCode,
    origin_headers: &HeaderMap,
    outcome: CacheOutcome,
) -> (HeaderMap, bool) {
    let mut headers = end_to_end_headers(origin_headers);
    headers.remove(SURROGATE_KEY);
    // The response writer adds the Content-Length of a body. A response to HEAD has no body, so the
    // origin's Content-Length is forwarded.
    let len = headers.remove(header::CONTENT_LENGTH);
    if let Some(len) = len.filter(|_| method == Method::HEAD) {
        headers.insert(header::CONTENT_LENGTH, len);
    }
    add_via_and_cache_status(&mut headers, outcome, None, Some(status.as_u16()));
    let bodiless = method == Method::HEAD || matches!(status.as_u16(), 204 | 304);
    (headers, bodiless)
}

/// Adds Via and Cache-Status. In Cache-Status, the edge's member follows the members of other
/// caches.
fn add_via_and_cache_status(
    headers: &mut HeaderMap,
    outcome: CacheOutcome,
    ttl_s: Option<i64>,
    status: Option<u16>,
) {
    headers.append(header::VIA, HeaderValue::from_static("1.1 headwater"));
    let text = outcome.cache_status(ttl_s, status);
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(CACHE_STATUS, value);
    }
}

/// Evaluates the request's preconditions. Returns 304 or 412 if the edge has to respond with this
/// status.
fn evaluate_preconditions(
    method: &Method,
    request: &HeaderMap,
    object: &CachedObject,
) -> Option<StatusCode> {
    if object.status != StatusCode::OK {
        return None;
    }
    evaluate_conditions(method, request, &object.validators).status()
}

fn respond_to_precondition(
    object: &CachedObject,
    status: StatusCode,
    outcome: CacheOutcome,
) -> Response<Body> {
    if status != StatusCode::NOT_MODIFIED {
        let what = "the cached object does not match the conditions of the request";
        return build_object_error_response(object, Error::new_client_error(status, what), outcome);
    }
    // A 304 contains the headers that identify the object and control its storage (RFC 9110 section
    // 15.4.5).
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = response_headers(object, outcome);
    for name in [
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
    ] {
        response.headers_mut().remove(name);
    }
    response
}

/// Builds an error response with the object's Age, and with Via and Cache-Status. Web pages of any
/// origin may read the response. Otherwise, a player's script would see a network error instead of
/// the status.
fn build_object_error_response(
    object: &CachedObject,
    error: Error,
    outcome: CacheOutcome,
) -> Response<Body> {
    let mut response = error.to_response();
    net::headers::allow_any_origin(response.headers_mut());
    add_cache_headers(response.headers_mut(), object, object.age_s(), outcome);
    response
}

fn respond_with_requested_ranges(
    method: &Method,
    request: &HeaderMap,
    object: &Arc<CachedObject>,
    outcome: CacheOutcome,
    blocks: Option<BlockBody>,
) -> Option<Response<Body>> {
    let mut headers = response_headers(object, outcome);
    let (mut status, len) = (object.status, object.len());
    let wanted = match len {
        Some(len) if status == StatusCode::OK => {
            range::requested_ranges(method, request, &object.validators, len)
        }
        _ => RequestedRanges::Whole,
    };
    let body = match (wanted, len) {
        (RequestedRanges::Unsatisfiable, Some(len)) => {
            let what = format_args!("no requested range is within the {len} bytes");
            let error = Error::new_client_error(StatusCode::RANGE_NOT_SATISFIABLE, what);
            let mut response = build_object_error_response(object, error, outcome);
            let value = range::content_range_unsatisfied(len);
            response.headers_mut().insert(header::CONTENT_RANGE, value);
            return Some(response);
        }
        (RequestedRanges::Ranges(ranges), Some(len)) => {
            match (ranges.as_slice(), object.body.complete_chunks()) {
                ([one], _) if is_bug_planted("range-shifted") && one.end < len => {
                    status = StatusCode::PARTIAL_CONTENT;
                    headers.insert(header::CONTENT_RANGE, range::content_range(one, len));
                    range_body(object, one.start + 1..one.end + 1, blocks)?
                }
                ([one], _) => {
                    status = StatusCode::PARTIAL_CONTENT;
                    headers.insert(header::CONTENT_RANGE, range::content_range(one, len));
                    range_body(object, one.clone(), blocks)?
                }
                (_, Some(pieces)) => {
                    status = StatusCode::PARTIAL_CONTENT;
                    let (kind, body) = multipart_body(&headers, pieces, ranges, len);
                    headers.insert(header::CONTENT_TYPE, kind);
                    body
                }
                // Several ranges are sent only from a complete body in memory. In all other cases,
                // the whole object is sent, which HTTP allows.
                (_, None) => range_body(object, 0..len, blocks)?,
            }
        }
        (_, Some(len)) => range_body(object, 0..len, blocks)?,
        (_, None) => growing_body(object, 0..u64::MAX, None)?,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Some(response)
}

/// Returns the bytes in `range` of an object as a response body.
fn range_body(
    object: &Arc<CachedObject>,
    range: Range<u64>,
    blocks: Option<BlockBody>,
) -> Option<Body> {
    if object.blocks.is_some() {
        // `blocks` is absent only for HEAD requests. The response to HEAD contains the length of
        // the body, but no body.
        let none = futures_util::stream::empty::<Result<Bytes, BodyError>>;
        let len = range.end - range.start;
        return Some(match blocks {
            Some(blocks) => blocks.into_body(range),
            None => Body::sized_stream(len, none()),
        });
    }
    if let Some(filed) = object.body.disk_file() {
        return Some(filed.to_response_body(&range));
    }
    match object.body.complete_chunks() {
        Some([one]) if range.end - range.start == one.len() as u64 => {
            Some(object.body.single_chunk_response_body(one))
        }
        Some(pieces) => Some(
            object
                .body
                .response_body_from_slices(range::slice_pieces(pieces, &range)),
        ),
        None => {
            let len = range.end - range.start;
            growing_body(object, range, Some(len))
        }
    }
}

fn growing_body(object: &Arc<CachedObject>, range: Range<u64>, len: Option<u64>) -> Option<Body> {
    let reader = object
        .body
        .growing
        .open_reader(range)?
        .map_err(BodyError::new)
        .boxed();
    Some(match len {
        Some(len) => Body::sized_stream(len, reader),
        None => Body::unsized_stream(reader),
    })
}

fn multipart_body(
    headers: &HeaderMap,
    pieces: &[Bytes],
    ranges: Vec<Range<u64>>,
    len: u64,
) -> (HeaderValue, Body) {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok());
    let multipart = Multipart::new(ranges, len, kind.unwrap_or("application/octet-stream"));
    let mut all = Vec::new();
    for (head, range) in multipart.parts() {
        all.push(head.clone());
        all.extend(range::slice_pieces(pieces, range));
    }
    all.push(multipart.tail());
    (multipart.content_type(), Body::from_pieces(all))
}

/// Builds the 504 response for a client that accepts only a cached response.
pub fn refuse_uncached() -> Response<Body> {
    let what = "no fresh response is cached, and the request demands one (only-if-cached)";
    let mut response = Error::new_client_error(StatusCode::GATEWAY_TIMEOUT, what).to_response();
    net::headers::allow_any_origin(response.headers_mut());
    response
}

/// Builds an error response. Its Cache-Status distinguishes the response from an error response of
/// the origin.
pub fn error_response(error: &Error, outcome: CacheOutcome) -> Response<Body> {
    let mut response = error.to_response();
    let mut text = String::from(crate::cache_outcome::NAME);
    let _ = write!(text, "; detail={}", outcome.reason_label());
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().append(CACHE_STATUS, value);
    }
    response
}

#[cfg(test)]
mod tests;
