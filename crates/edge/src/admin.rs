//! The admin port for operators: status, purges, warming and reloads. All paths except `/healthz`
//! and `/readyz` require the token.

mod status;

use std::sync::Arc;
use std::time::Instant;

use http::header::{HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use net::admin_port::{json_response, page_response, refuse_without_token};
use net::body::Incoming;
use net::server::ConnectionInspector;
use net::{Body, Conn, Error, viewers};
use serde_json::json;

use crate::cache_key::unescape_unreserved;
use crate::purge::PurgeTarget;
use crate::reload::ReloadableEdge;
use crate::{request_facts, warm};

/// Maximum size of a URL list, in bytes.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// The state of the admin port.
pub struct AdminPort {
    pub edge: Arc<ReloadableEdge>,
    pub token: Arc<str>,
    /// Connections of the main port.
    pub connections: ConnectionInspector,
    /// Index of the upstream connection pool that requests of this port use.
    pub worker: usize,
    /// Time at which the process started.
    pub started_at: Instant,
}

/// Handles one request to the admin port.
pub async fn handle_admin_request(
    admin: Arc<AdminPort>,
    request: Request<Incoming>,
    conn: Conn,
) -> Response<Body> {
    let edge = admin.edge.current_edge();
    let (head, body) = request.into_parts();
    let (method, uri) = (&head.method, &head.uri);
    // Load balancers have no token, so health checks do not require a token.
    match uri.path() {
        "/healthz" => return request_facts::text_response("ok\n"),
        "/readyz" => return edge.ready_response(),
        _ => {}
    }
    if let Some(refusal) = refuse_without_token(&head.headers, &admin.token, "headwater edge") {
        return refusal;
    }
    if *method == Method::POST && is_cross_site_request(&head.headers) {
        let what = "requests from pages of other sites are not allowed";
        return Error::new_client_error(StatusCode::FORBIDDEN, what).to_response();
    }
    let collector = edge.collector.as_deref();
    if let Some(response) = viewers::viewers_response(collector, method, uri.path()) {
        return response;
    }
    let query = uri.query().unwrap_or_default();
    match (method, uri.path()) {
        (&Method::GET, "/") => page_response(include_str!("admin/status.html")),
        (&Method::GET, "/status") => json_response(&status::build_status(&admin, &edge)),
        (&Method::GET, "/metrics") => edge.metrics_response(&head.headers),
        (&Method::POST, "/purge") => match parse_purge_query(query) {
            Ok((what, soft)) => {
                json_response(&json!({ "purged": edge.purge_objects(&what, soft) }))
            }
            Err(why) => Error::new_client_error(StatusCode::BAD_REQUEST, why).to_response(),
        },
        (&Method::POST, "/reload") => match admin.edge.reload_settings() {
            Ok(fixed) => json_response(&json!({ "reloaded": true, "takes_a_restart": fixed })),
            Err(wrong) => Error::new_client_error(StatusCode::BAD_REQUEST, wrong).to_response(),
        },
        (&Method::POST, "/warm") => {
            let list = match net::body::read_request_body(body, LIST_BYTES_MAX).await {
                Ok(bytes) => parse_warm_list(&bytes, query),
                Err(error) => return error.to_response(),
            };
            match list {
                Ok(urls) => {
                    let warmed = edge
                        .warm_urls(admin.worker, urls, &head.headers, conn.client())
                        .await;
                    json_response(&json!(warmed))
                }
                Err(why) => Error::new_client_error(StatusCode::BAD_REQUEST, why).to_response(),
            }
        }
        _ => {
            let what =
                "not found; use GET /, /status, /metrics, /viewers, or POST /purge, /warm, /reload";
            Error::new_client_error(StatusCode::NOT_FOUND, what).to_response()
        }
    }
}

/// Returns whether a page with another scheme, host or port sent the request. A browser that has
/// stored the token also sends it with such a request. The browser then marks the request in
/// `Sec-Fetch-Site` (Fetch Metadata).
fn is_cross_site_request(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site))
}

/// Parses a list of URLs. The query may contain the folder to which relative URLs refer, as in
/// `base=/film/`.
fn parse_warm_list(bytes: &[u8], query: &str) -> Result<Vec<Uri>, String> {
    let base = query.split('&').find_map(|part| part.strip_prefix("base="));
    let text = std::str::from_utf8(bytes).map_err(|_| "the list is not UTF-8 text")?;
    warm::parse_url_list(text, base.unwrap_or_default())
}

/// Parses the query of a purge. The query contains exactly one of `url=/a`, `prefix=/film/` and
/// `tag=film`, and optionally `soft` as the first or last parameter. Any other `&` is part of the
/// value, because targets may contain `&`.
fn parse_purge_query(query: &str) -> Result<(PurgeTarget, bool), &'static str> {
    let soft_value = |part: &str| match part.split_once('=').unwrap_or((part, "")) {
        ("soft", value) => Some(value != "0"),
        _ => None,
    };
    let first = query.split_once('&');
    let first = first.and_then(|(part, rest)| Some((soft_value(part)?, rest)));
    let last = query.rsplit_once('&');
    let last = last.and_then(|(rest, part)| Some((soft_value(part)?, rest)));
    // If `soft` is the first parameter, the target may end with `&soft`.
    let (soft, selection) = first.or(last).unwrap_or((false, query));
    let (name, value) = selection.split_once('=').unwrap_or((selection, ""));
    if value.is_empty() {
        return Err("exactly one of url, prefix and tag is required, with a value");
    }
    let target = match name {
        "url" => PurgeTarget::Url(unescape_unreserved(value).into_owned()),
        "prefix" => PurgeTarget::Prefix(unescape_unreserved(value).into_owned()),
        "tag" => PurgeTarget::Tag(value.to_owned()),
        _ => return Err("unknown parameter; use url, prefix, tag and soft"),
    };
    Ok((target, soft))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_query_selects_one_target() {
        assert_eq!(
            parse_purge_query("url=/a"),
            Ok((PurgeTarget::Url("/a".into()), false))
        );
        assert_eq!(
            parse_purge_query("url=/%66ilm%2f"),
            Ok((PurgeTarget::Url("/film%2f".into()), false))
        );
        assert_eq!(
            parse_purge_query("prefix=/f/&soft"),
            Ok((PurgeTarget::Prefix("/f/".into()), true))
        );
        assert_eq!(
            parse_purge_query("tag=x&soft=0"),
            Ok((PurgeTarget::Tag("x".into()), false))
        );
        for wrong in ["", "url=", "&url=/a", "all=1", "soft", "soft&soft"] {
            assert!(parse_purge_query(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_purge_target_may_contain_ampersands() {
        for (query, target, soft) in [
            ("url=/a?x=1&y=2", "/a?x=1&y=2", false),
            ("url=/a?x&y&soft", "/a?x&y", true),
            ("soft=1&url=/a?x&soft", "/a?x&soft", true),
            ("soft=0&url=/a?x&soft", "/a?x&soft", false),
            ("url=/a&b", "/a&b", false),
        ] {
            let expected = PurgeTarget::Url(target.into());
            assert_eq!(parse_purge_query(query), Ok((expected, soft)), "{query}");
        }
    }
}
