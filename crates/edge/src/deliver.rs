//! From an object to an answer: conditions, ranges, and what we add to the head.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, try_unfold};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use net::body::Cut;
use net::conditional::evaluate;
use net::range::{self, Multipart, Wanted};
use net::{Body, Error};

use crate::headers::{CACHE_STATUS, SURROGATE_KEY, end_to_end};
use crate::object::Object;
use crate::origins::Reply;
use crate::parts::Blocks;
use crate::reason::Outcome;

/// Answers a request with an object, as far as it is here; the rest follows as it comes. `None`
/// when its first bytes are gone: it has proved too long to be kept since the request found it.
pub fn object(
    method: &Method,
    request: &HeaderMap,
    object: &Arc<Object>,
    outcome: Outcome,
    blocks: Option<Blocks>,
    touched: bool,
) -> Option<Response<Body>> {
    let response = match condition(method, request, object) {
        Some(status) => conditional(object, status, outcome),
        None => represent(method, request, object, outcome, blocks, touched)?,
    };
    object.uses.fetch_add(1, Relaxed);
    Some(response)
}

/// What all answers from an object say: its own headers, and what we add. That of a hit changes once
/// a second, and is prepared.
fn head(object: &Object, outcome: Outcome) -> HeaderMap {
    let age_s = object.age_s();
    if outcome != Outcome::Hit {
        return dressed(object, age_s, outcome);
    }
    match &*object.prepared.load() {
        Some(prepared) if prepared.0 == age_s => prepared.1.clone(),
        _ => {
            let headers = dressed(object, age_s, outcome);
            let prepared = Arc::new((age_s, headers.clone()));
            object.prepared.store(Some(prepared));
            headers
        }
    }
}

fn dressed(object: &Object, age_s: u64, outcome: Outcome) -> HeaderMap {
    let mut headers = object.headers.clone();
    say(&mut headers, object, age_s, outcome);
    headers
}

/// What we add: its age, and what became of the request here.
fn say(headers: &mut HeaderMap, object: &Object, age_s: u64, outcome: Outcome) {
    let asked = matches!(outcome, Outcome::Miss(..) | Outcome::Revalidated(_));
    // What just came has an age where a cache before us had it, and says so.
    if age_s > 0 || !matches!(outcome, Outcome::Miss(..)) {
        headers.insert(header::AGE, age_s.into());
    }
    let status = match outcome {
        Outcome::Revalidated(_) => 304,
        _ => object.status.as_u16(),
    };
    let ttl_s = Some(object.ttl_at(age_s));
    sign(headers, outcome, ttl_s, asked.then_some(status));
}

/// The first byte that a request wants of an object's body, if any.
pub fn first(method: &Method, request: &HeaderMap, object: &Object) -> Option<u64> {
    if method != Method::GET || condition(method, request, object).is_some() {
        return None;
    }
    match range::wanted(method, request, &object.validators, object.len()?) {
        Wanted::Unsatisfiable => None,
        Wanted::Ranges(ranges) if ranges.len() == 1 => ranges.first().map(|range| range.start),
        _ => Some(0),
    }
}

/// Hands an answer of the origin on to one client.
pub fn reply(method: &Method, reply: Reply, outcome: Outcome) -> Response<Body> {
    let answer = reply.answer;
    let (status, len) = (answer.status, answer.len());
    let (headers, bodiless) = relayed_head(method, status, &answer.headers, outcome);
    let body = if bodiless {
        Body::empty()
    } else {
        let pieces = try_unfold(answer, |mut answer| async {
            let piece = answer.piece().await.map_err(Cut::new)?;
            Ok::<_, Cut>(piece.map(|piece| (piece, answer)))
        });
        match len {
            Some(len) => Body::stream(len, pieces),
            None => Body::unsized_stream(pieces),
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The head of an answer that is handed on, and whether it has no body.
pub fn relayed_head(
    method: &Method,
    status: StatusCode,
    said: &HeaderMap,
    outcome: Outcome,
) -> (HeaderMap, bool) {
    let mut headers = end_to_end(said);
    headers.remove(SURROGATE_KEY);
    // What frames a body is said by whoever sends it; of an answer to HEAD there is none to send.
    let len = headers.remove(header::CONTENT_LENGTH);
    if let Some(len) = len.filter(|_| method == Method::HEAD) {
        headers.insert(header::CONTENT_LENGTH, len);
    }
    sign(&mut headers, outcome, None, Some(status.as_u16()));
    let bodiless = method == Method::HEAD || matches!(status.as_u16(), 204 | 304);
    (headers, bodiless)
}

/// Via, and our member of Cache-Status behind those of others.
fn sign(headers: &mut HeaderMap, outcome: Outcome, ttl_s: Option<i64>, status: Option<u16>) {
    headers.append(header::VIA, HeaderValue::from_static("1.1 headwater"));
    let text = outcome.cache_status(ttl_s, status);
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(CACHE_STATUS, value);
    }
}

/// 304 or 412, if the request asks for that.
fn condition(method: &Method, request: &HeaderMap, object: &Object) -> Option<StatusCode> {
    if object.status != StatusCode::OK {
        return None;
    }
    evaluate(method, request, &object.validators).status()
}

fn conditional(object: &Object, status: StatusCode, outcome: Outcome) -> Response<Body> {
    if status != StatusCode::NOT_MODIFIED {
        let what = "what is kept is not what the request's conditions name";
        return refused(object, Error::client(status, what), outcome);
    }
    // RFC 9110 section 15.4.5: what identifies it and how it may be kept.
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = head(object, outcome);
    for name in [
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
    ] {
        response.headers_mut().remove(name);
    }
    response
}

/// The client's own fault, found by what is kept.
fn refused(object: &Object, error: Error, outcome: Outcome) -> Response<Body> {
    let mut response = error.response();
    say(response.headers_mut(), object, object.age_s(), outcome);
    response
}

fn represent(
    method: &Method,
    request: &HeaderMap,
    object: &Arc<Object>,
    outcome: Outcome,
    blocks: Option<Blocks>,
    touched: bool,
) -> Option<Response<Body>> {
    let mut headers = head(object, outcome);
    let (mut status, len) = (object.status, object.len());
    let wanted = match len {
        Some(len) if status == StatusCode::OK => {
            range::wanted(method, request, &object.validators, len)
        }
        _ => Wanted::Whole,
    };
    let body = match (wanted, len) {
        (Wanted::Unsatisfiable, Some(len)) => {
            let what = format_args!("none of the ranges lies within the {len} bytes");
            let error = Error::client(StatusCode::RANGE_NOT_SATISFIABLE, what);
            let mut response = refused(object, error, outcome);
            let value = range::content_range_unsatisfied(len);
            response.headers_mut().insert(header::CONTENT_RANGE, value);
            return Some(response);
        }
        (Wanted::Ranges(ranges), Some(len)) => match (ranges.as_slice(), object.content.pieces()) {
            ([one], _) => {
                status = StatusCode::PARTIAL_CONTENT;
                headers.insert(header::CONTENT_RANGE, range::content_range(one, len));
                part(object, one.clone(), blocks, touched)?
            }
            (_, Some(pieces)) => {
                status = StatusCode::PARTIAL_CONTENT;
                let (kind, body) = several(&headers, pieces, ranges, len);
                headers.insert(header::CONTENT_TYPE, kind);
                body
            }
            // Several ranges of what is still coming, or kept in parts: the whole is an answer, too.
            (_, None) => part(object, 0..len, blocks, touched)?,
        },
        (_, Some(len)) => part(object, 0..len, blocks, touched)?,
        (_, None) => growing(object, 0..u64::MAX, None)?,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Some(response)
}

/// These bytes: at once if they are here, else as they come.
fn part(
    object: &Arc<Object>,
    range: Range<u64>,
    blocks: Option<Blocks>,
    touched: bool,
) -> Option<Body> {
    if object.parts.is_some() {
        // Of the answer to HEAD only the length is sent.
        let none = futures_util::stream::empty::<Result<Bytes, Cut>>;
        let len = range.end - range.start;
        return Some(match blocks {
            Some(blocks) => blocks.body(range),
            None => Body::stream(len, none()),
        });
    }
    if let Some(filed) = object.content.file() {
        return Some(filed.send(&range, touched));
    }
    match object.content.pieces() {
        Some([one]) if range.end - range.start == one.len() as u64 => {
            Some(object.content.named(Body::full(one.clone())))
        }
        Some(pieces) => {
            let body = Body::pieces(range::slice(pieces, &range));
            Some(object.content.named(body))
        }
        None => {
            let len = range.end - range.start;
            growing(object, range, Some(len))
        }
    }
}

fn growing(object: &Arc<Object>, range: Range<u64>, len: Option<u64>) -> Option<Body> {
    let reader = object
        .content
        .growing
        .read(range)?
        .map_err(Cut::new)
        .boxed();
    Some(match len {
        Some(len) => Body::stream(len, reader),
        None => Body::unsized_stream(reader),
    })
}

fn several(
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
        all.extend(range::slice(pieces, range));
    }
    all.push(multipart.tail());
    (multipart.content_type(), Body::pieces(all))
}

/// 504 for a client that wants only what is kept.
pub fn refusal() -> Response<Body> {
    let what = "nothing fresh is kept, and the client wants nothing else (only-if-cached)";
    Error::client(StatusCode::GATEWAY_TIMEOUT, what).response()
}

/// An error, told apart from an origin's.
pub fn error(error: &Error, outcome: Outcome) -> Response<Body> {
    let mut response = error.response();
    let mut text = String::from(crate::reason::NAME);
    let _ = write!(text, "; detail={}", outcome.reason());
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().append(CACHE_STATUS, value);
    }
    response
}

#[cfg(test)]
mod tests;
