//! The port for the people who run it: status, purging. Everything needs the token.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use net::{Body, Error};
use serde_json::{Value, json};

use crate::Edge;
use crate::entry::Entry;
use crate::purge::What;

/// Objects shown on the status page.
const TOP: usize = 20;

/// Answers one request at the admin port.
pub async fn answer<B>(edge: Arc<Edge>, token: Arc<str>, request: Request<B>) -> Response<Body> {
    let (method, uri) = (request.method(), request.uri());
    if !allowed(request.headers(), &token) {
        let what = "this port needs its token: Authorization: Bearer TOKEN, or as a password";
        let mut response = Error::client(StatusCode::UNAUTHORIZED, what).response();
        let ask = HeaderValue::from_static("Basic realm=\"headwater edge\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
        return response;
    }
    let query = uri.query().unwrap_or_default();
    match (method, uri.path()) {
        (&Method::GET, "/") => {
            let mut response = Response::new(Body::full(page(&status(&edge))));
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        (&Method::GET, "/status") => as_json(&status(&edge)),
        (&Method::GET, "/metrics") => edge.metrics(),
        (&Method::POST, "/purge") => match purge_of(query) {
            Ok((what, soft)) => as_json(&json!({ "purged": edge.purge(&what, soft) })),
            Err(why) => Error::client(StatusCode::BAD_REQUEST, why).response(),
        },
        _ => {
            let what = "there are GET /, GET /status, GET /metrics and POST /purge";
            Error::client(StatusCode::NOT_FOUND, what).response()
        }
    }
}

/// `Bearer TOKEN`, or `Basic` with the token as password (for browsers).
fn allowed(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION);
    let Some((scheme, given)) = value
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
    else {
        return false;
    };
    if scheme.eq_ignore_ascii_case("bearer") {
        return same(given.trim().as_bytes(), token.as_bytes());
    }
    let pair = decode(given.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"));
    let password = pair.as_deref().and_then(|pair| {
        let colon = pair.iter().position(|byte| *byte == b':')?;
        pair.get(colon + 1..)
    });
    password.is_some_and(|password| same(password, token.as_bytes()))
}

/// Takes as long whether they differ early or late.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differ == 0
}

/// Base64 (RFC 4648 section 4).
fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    Some(out)
}

/// `url=/a`, `prefix=/film/` or `tag=film`, and `soft`.
fn purge_of(query: &str) -> Result<(What, bool), &'static str> {
    let (mut what, mut soft) = (None, false);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let new = match name {
            "soft" => {
                soft = value != "0";
                continue;
            }
            "url" => What::Url(value.to_owned()),
            "prefix" => What::Prefix(value.to_owned()),
            "tag" => What::Tag(value.to_owned()),
            _ => return Err("purge knows url, prefix, tag and soft"),
        };
        if value.is_empty() || what.replace(new).is_some() {
            return Err("one of url, prefix and tag, and not empty");
        }
    }
    Ok((what.ok_or("one of url, prefix and tag")?, soft))
}

fn status(edge: &Edge) -> Value {
    let mut objects: Vec<_> = edge
        .memory
        .all()
        .into_iter()
        .filter_map(|(key, entry)| match entry {
            Entry::Object(object) => Some((object.uses.load(Relaxed), key, object)),
            _ => None,
        })
        .collect();
    objects.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let top = objects.iter().take(TOP).map(|(uses, key, object)| {
        json!({
            "key": key.as_str(), "uses": uses, "bytes": object.content.len(),
            "age_s": object.age_s(), "ttl_s": object.ttl_s(), "status": object.status.as_u16(),
        })
    });
    json!({
        "objects": objects.len(),
        "memory_bytes": edge.memory.bytes(),
        "fetches": edge.flights.len(),
        "results": edge.results(),
        "origin": edge.settings.origin.to_string(),
        "draining": edge.shutdown.is_draining(),
        "top": top.collect::<Vec<_>>(),
    })
}

fn as_json(value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{value}\n")));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn page(status: &Value) -> String {
    let mut text = String::from(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=2>\
         <title>headwater edge</title>\
         <style>body{font:15px system-ui;margin:2em;max-width:70em}td,th{text-align:left;\
         padding:.2em 1em .2em 0}td.n{text-align:right}</style><h1>headwater edge</h1><table>",
    );
    let count = |name: &str| status["results"][name].as_u64().unwrap_or(0);
    let all: u64 = status["results"]
        .as_object()
        .map_or(0, |map| map.values().filter_map(Value::as_u64).sum());
    let near = count("hit") + count("stale") + count("follow") + count("revalidated");
    let ratio = if all == 0 {
        0.0
    } else {
        near as f64 * 100.0 / all as f64
    };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "<tr><th>answered without a fetch<td class=n>{ratio:.1} %"
    );
    for name in ["objects", "memory_bytes", "fetches", "origin"] {
        let value = status[name].to_string();
        let _ = write!(
            text,
            "<tr><th>{name}<td class=n>{}",
            escaped(value.trim_matches('"'))
        );
    }
    for (name, value) in status["results"].as_object().into_iter().flatten() {
        let _ = write!(text, "<tr><th>{}<td class=n>{value}", escaped(name));
    }
    text.push_str("</table><h2>Asked for most</h2><table><tr><th>uses<th>bytes<th>ttl s<th>key");
    for row in status["top"].as_array().into_iter().flatten() {
        let key = escaped(row["key"].as_str().unwrap_or_default());
        let (uses, bytes, ttl) = (&row["uses"], &row["bytes"], &row["ttl_s"]);
        let _ = write!(
            text,
            "<tr><td class=n>{uses}<td class=n>{bytes}<td class=n>{ttl}<td>{key}"
        );
    }
    text + "</table>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            allowed(&headers, "s3cret")
        };
        assert!(with("Bearer s3cret") && with("bearer  s3cret"));
        assert!(with("Basic YW55Ym9keTpzM2NyZXQ="));
        for wrong in [
            "Bearer",
            "Bearer s3cre",
            "Bearer s3cret!",
            "Basic s3cret",
            "Basic !",
            "s3cret",
        ] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!allowed(&HeaderMap::new(), "s3cret"));
    }

    #[test]
    fn a_purge_names_one_thing() {
        assert_eq!(purge_of("url=/a"), Ok((What::Url("/a".into()), false)));
        assert_eq!(
            purge_of("prefix=/f/&soft"),
            Ok((What::Prefix("/f/".into()), true))
        );
        assert_eq!(purge_of("tag=x&soft=0"), Ok((What::Tag("x".into()), false)));
        for wrong in ["", "url=", "url=/a&tag=b", "all=1", "soft"] {
            assert!(purge_of(wrong).is_err(), "{wrong}");
        }
    }
}
