//! The port for the people who run it: status, purging. Everything needs the token.

mod status;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use net::body::Incoming;
use net::server::Connections;
use net::{Body, Conn, Error, token};
use serde_json::{Value, json};

use crate::live::Live;
use crate::purge::What;
use crate::{receive, warm};

/// Bytes of a list to warm up from, at most.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// All that the port has to do with.
pub struct Admin {
    pub live: Arc<Live>,
    pub token: Arc<str>,
    /// Of the other port.
    pub connections: Connections,
    /// Its number among those who ask origins.
    pub worker: usize,
    /// When the process began.
    pub since: Instant,
}

/// The page brings all it needs, and loads nothing from anywhere.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'";

/// Answers one request at the admin port.
pub async fn answer(admin: Arc<Admin>, request: Request<Incoming>, conn: Conn) -> Response<Body> {
    let edge = admin.live.now();
    let (head, body) = request.into_parts();
    let (method, uri) = (&head.method, &head.uri);
    // Balancers ask without a token.
    match uri.path() {
        "/healthz" => return receive::short("ok\n"),
        "/readyz" => return edge.ready(),
        _ => {}
    }
    if !token::allowed(&head.headers, &admin.token) {
        let what = "this port needs its token: Authorization: Bearer TOKEN, or as a password";
        let mut response = Error::client(StatusCode::UNAUTHORIZED, what).response();
        let ask = HeaderValue::from_static("Basic realm=\"headwater edge\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
        return response;
    }
    if *method == Method::POST && is_foreign(&head.headers) {
        let what = "a page from elsewhere may not do this";
        return Error::client(StatusCode::FORBIDDEN, what).response();
    }
    let query = uri.query().unwrap_or_default();
    match (method, uri.path()) {
        (&Method::GET, "/") => {
            let page = Bytes::from_static(include_bytes!("admin/status.html"));
            let mut response = Response::new(Body::full(page));
            let headers = response.headers_mut();
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            headers.insert(header::CONTENT_TYPE, kind);
            let policy = HeaderValue::from_static(POLICY);
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
            response
        }
        (&Method::GET, "/status") => as_json(&status::of(&admin, &edge)),
        (&Method::GET, "/metrics") => edge.metrics(),
        (&Method::POST, "/purge") => match purge_of(query) {
            Ok((what, soft)) => as_json(&json!({ "purged": edge.purge(&what, soft) })),
            Err(why) => Error::client(StatusCode::BAD_REQUEST, why).response(),
        },
        (&Method::POST, "/reload") => match admin.live.reload() {
            Ok(fixed) => as_json(&json!({ "reloaded": true, "takes_a_restart": fixed })),
            Err(wrong) => Error::client(StatusCode::BAD_REQUEST, wrong).response(),
        },
        (&Method::POST, "/warm") => {
            let list = match net::body::read(body, LIST_BYTES_MAX).await {
                Ok(bytes) => list_of(&bytes, query),
                Err(error) => return error.response(),
            };
            match list {
                Ok(urls) => {
                    let warmed = edge.warm(admin.worker, urls, &head.headers, &conn).await;
                    as_json(&json!(warmed))
                }
                Err(why) => Error::client(StatusCode::BAD_REQUEST, why).response(),
            }
        }
        _ => {
            let what = "there are GET /, /status, /metrics, and POST /purge, /warm, /reload";
            Error::client(StatusCode::NOT_FOUND, what).response()
        }
    }
}

/// A browser that knows the token sends it for other sites' pages, too, and says so (Fetch
/// Metadata).
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site))
}

/// A list of URLs, and `base=/film/` for those that are relative.
fn list_of(bytes: &[u8], query: &str) -> Result<Vec<Uri>, String> {
    let base = query.split('&').find_map(|part| part.strip_prefix("base="));
    let text = std::str::from_utf8(bytes).map_err(|_| "the list is no text")?;
    warm::list(text, base.unwrap_or_default())
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

fn as_json(value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{value}\n")));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

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
