//! The HTTP client of `object_store`, on top of the connection pool.

use super::pool::ConnectionPool;
use super::pooled_connection::PooledConnection;
use super::request_facts::{
    attach_body, edit_current_notes, is_body_read_later, record_request_kind, traceparent,
};
use super::{TransportError, WatchedBody};
use async_trait::async_trait;
use http::header::{self, HeaderValue};
use http::response::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use upstream::ServerAddress;

/// Maximum number of redirects that are followed for one request. All redirects must lead to the
/// same server.
const REDIRECTS_MAX: usize = 3;
/// Maximum number of bytes that are read from the body of an error response.
const REASON_BYTES_MAX: usize = 16 << 10;
/// Maximum length in bytes of a response body that is not a byte range, such as a listing or
/// credentials.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Expected length in bytes of a response body if no range was requested.
const TEXT_BYTES: usize = 14 << 10;

/// Sends each request to the server in its URL, or to a server in front of the storage.
#[derive(Clone)]
pub(crate) struct StorageHttpClient {
    pool: Arc<ConnectionPool>,
    via: Option<ServerAddress>,
    /// Whether redirects to the same server are followed. Signed requests cannot follow redirects,
    /// because a signature is valid for one URL only.
    follow: bool,
}

/// Passes the client to `object_store`.
#[derive(Clone)]
pub(crate) struct StorageHttpConnector(pub(crate) StorageHttpClient);

impl StorageHttpClient {
    pub(crate) fn new(pool: Arc<ConnectionPool>, follow: bool) -> StorageHttpClient {
        StorageHttpClient {
            pool,
            via: None,
            follow,
        }
    }

    /// Returns a client that sends all requests to the server in `url`, with an unchanged `Host`.
    /// Returns `None` if `url` is not an `http` or `https` URL.
    pub(crate) fn with_fixed_server(&self, url: &Uri) -> Option<StorageHttpClient> {
        let via = Some(ServerAddress::from_uri(url)?);
        Some(StorageHttpClient {
            via,
            ..self.clone()
        })
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let (parts, body) = request.into_parts();
        let ranged = record_request_kind(parts.headers.contains_key(header::RANGE));
        let mut uri = parts.uri.clone();
        for _ in 0..=REDIRECTS_MAX {
            let mut hop = Request::new(body.clone());
            *hop.method_mut() = parts.method.clone();
            *hop.headers_mut() = parts.headers.clone();
            *hop.uri_mut() = uri.clone();
            let (parts, lease) = self.exchange(hop).await?;
            edit_current_notes(|notes| {
                notes.status = Some(parts.status.as_u16());
                notes.head_received = Some(Instant::now());
                notes.date = parse_date(&parts);
            });
            match redirect_target(&uri, &parts) {
                Some(_) if !self.follow => {
                    let what = "it leads to another region or address; check both";
                    return Err(TransportError::Redirect(what.into()));
                }
                Some(to) => uri = to?,
                None => return self.convert_response(ranged, parts, lease).await,
            }
        }
        Err(TransportError::Redirect("more than 3 redirects".into()))
    }

    /// Sends a request and receives the head of its response.
    async fn exchange(
        &self,
        request: HttpRequest,
    ) -> Result<(Parts, PooledConnection), TransportError> {
        let target = match &self.via {
            Some(via) => via.clone(),
            None => ServerAddress::from_uri(request.uri())
                .ok_or_else(|| TransportError::Connect("not an http or https URL".into()))?,
        };
        match self.exchange_once(&target, &request, None).await {
            // The server closed a reused connection before it sent the head of the response. The
            // request is sent again, because all requests to the storage may be repeated.
            Err((TransportError::Interrupted(_), Some(stale_connection))) => {
                let second = self
                    .exchange_once(&target, &request, Some(stale_connection))
                    .await;
                second.map_err(|(failed, _)| failed)
            }
            outcome => outcome.map_err(|(failed, _)| failed),
        }
    }

    /// Sends a request once. If a reused connection fails before the timeout, the error contains
    /// the number of the connection. `failed` is the number of a connection that has failed before
    /// and must not be used again.
    async fn exchange_once(
        &self,
        target: &ServerAddress,
        request: &HttpRequest,
        failed: Option<u64>,
    ) -> Result<(Parts, PooledConnection), (TransportError, Option<u64>)> {
        let lease = self.pool.acquire(target, failed).await;
        let mut lease = lease.map_err(|failed| (failed, None))?;
        edit_current_notes(|notes| notes.connection = Some((lease.id, lease.is_reused)));
        let mut request =
            to_wire_format(request, lease.is_shared()).map_err(|failed| (failed, None))?;
        if let Some(traceparent) = traceparent() {
            edit_current_notes(|notes| notes.server = Some(target.clone()));
            request
                .headers_mut()
                .insert(trace::TRACEPARENT, traceparent);
        }
        let wait = self.pool.options().timeouts.first_byte;
        let expected = match is_body_read_later() {
            true => 0,
            false => expected_len(request.headers()),
        };
        let exchange = lease.exchange(&request, expected);
        match tokio::time::timeout(wait, exchange).await {
            Ok(Ok(parts)) => Ok((parts, lease)),
            Ok(Err(failed)) => Err((failed, lease.is_reused.then_some(lease.id))),
            Err(_) => {
                // The server may be unreachable although the connection is not closed. The operating
                // system notices this only after minutes.
                lease.retire_if_shared();
                Err((TransportError::FirstByteTimeout, None))
            }
        }
    }

    /// Converts the response for `object_store`. `ranged` is set if a range of an object was
    /// requested.
    async fn convert_response(
        &self,
        ranged: bool,
        mut parts: Parts,
        lease: PooledConnection,
    ) -> Result<HttpResponse, TransportError> {
        restore_content_length(&mut parts);
        let bounded = parts.status == StatusCode::PARTIAL_CONTENT;
        let bytes_max = if bounded { u64::MAX } else { TEXT_BYTES_MAX };
        let is_ok = parts.status == StatusCode::OK;
        let content_length = parts.headers.get(header::CONTENT_LENGTH);
        if is_ok && ranged && content_length.is_some_and(|len| len == "0") {
            // No range of an empty object can be satisfied. Some servers respond with 416, and
            // others respond with 200 and an empty body.
            parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
            edit_current_notes(|notes| notes.status = Some(parts.status.as_u16()));
        } else if is_ok && ranged {
            // Ignores the body, which may be the whole film.
            let body = HttpResponseBody::from(Vec::new());
            return Ok(Response::from_parts(parts, body));
        }
        let transport = self.pool.options();
        let watched = WatchedBody::new(lease, transport.pooled, transport.timeouts, bytes_max);
        if parts.status.is_client_error() || parts.status.is_server_error() {
            // Reads only the error code, because `object_store` would quote the whole body in its
            // error.
            let reason = Limited::new(watched, REASON_BYTES_MAX).collect().await;
            let code = reason
                .ok()
                .and_then(|text| parse_error_code(&text.to_bytes()));
            edit_current_notes(|notes| notes.code = code);
            let body = HttpResponseBody::from(Vec::new());
            return Ok(Response::from_parts(parts, body));
        }
        let left = match ranged && bounded {
            true => attach_body(watched),
            false => Some(watched),
        };
        let body = left.map_or_else(|| HttpResponseBody::from(Vec::new()), HttpResponseBody::new);
        Ok(Response::from_parts(parts, body))
    }
}

fn parse_date(parts: &Parts) -> Option<SystemTime> {
    let date = parts.headers.get(header::DATE)?.to_str().ok()?;
    httpdate::parse_http_date(date).ok()
}

/// Converts a request to the form of its protocol. An HTTP/1.1 request has a target of path and
/// query, and a `Host` field. An HTTP/2 request (`shared`) has a scheme and an authority instead of
/// `Host` (RFC 9113 section 8.3.1).
fn to_wire_format(request: &HttpRequest, shared: bool) -> Result<HttpRequest, TransportError> {
    let (uri, mut request) = (request.uri(), request.clone());
    let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
    // Omits a user name and password in the URL.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let no_request = |_| TransportError::Connect("the path is not valid in a request".into());
    if shared {
        let uri = Uri::builder()
            .scheme(uri.scheme_str().unwrap_or("https"))
            .authority(host)
            .path_and_query(target);
        *request.uri_mut() = uri.build().map_err(no_request)?;
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().remove(header::HOST);
        return Ok(request);
    }
    let host = HeaderValue::from_str(host)
        .map_err(|_| TransportError::Connect("the host is not valid in a header".into()))?;
    request.headers_mut().insert(header::HOST, host);
    let uri = Uri::builder().path_and_query(target);
    *request.uri_mut() = uri.build().map_err(no_request)?;
    Ok(request)
}

/// Returns the expected length of the response's body in bytes.
fn expected_len(headers: &HeaderMap) -> usize {
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let ends = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ends.and_then(|(first, last)| usize::checked_sub(last, first)?.checked_add(1))
        .unwrap_or(TEXT_BYTES)
}

/// Derives a missing `Content-Length` from `Content-Range`. `object_store` requires
/// `Content-Length`, but a proxy may have removed the field. The received bytes are later checked
/// against this length.
fn restore_content_length(parts: &mut Parts) {
    if parts.status != StatusCode::PARTIAL_CONTENT
        || parts.headers.contains_key(header::CONTENT_LENGTH)
    {
        return;
    }
    let range = parts.headers.get(header::CONTENT_RANGE);
    let range = range.and_then(|value| value.to_str().ok()?.strip_prefix("bytes "));
    let ends = range.and_then(|range| range.split_once('/')?.0.split_once('-'));
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    if let Some((first, last)) = ends
        && let Some(len) = u64::checked_sub(last, first).and_then(|n| n.checked_add(1))
    {
        parts.headers.insert(header::CONTENT_LENGTH, len.into());
    }
}

/// Returns the target of a redirect, or `None` if the response is not a redirect. A target on
/// another server is an error.
fn redirect_target(from: &Uri, parts: &Parts) -> Option<Result<Uri, TransportError>> {
    if !matches!(parts.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = parts.headers.get(header::LOCATION);
    let location = location.and_then(|value| value.to_str().ok()).unwrap_or("");
    let refused = |what: &str| Some(Err(TransportError::Redirect(what.to_owned())));
    let base = url::Url::parse(&from.to_string());
    let Ok(to) = base.and_then(|base| base.join(location)) else {
        return refused("to an invalid URL");
    };
    match to.as_str().parse::<Uri>() {
        Ok(to) if ServerAddress::from_uri(&to) == ServerAddress::from_uri(from) => Some(Ok(to)),
        _ => refused("to another server; serve from that one instead"),
    }
}

/// Returns the storage's error code from an XML body. Only a code of ASCII letters is accepted, so
/// that no other part of the response is passed on.
fn parse_error_code(xml: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(xml).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let plain =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphabetic());
    plain.then(|| code.to_owned())
}

#[async_trait]
impl HttpService for StorageHttpClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.send(request).await.map_err(|failed| {
            edit_current_notes(|notes| notes.error = Some(failed.clone()));
            failed.into()
        })
    }
}

impl HttpConnector for StorageHttpConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

impl fmt::Debug for StorageHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageHttpClient(via {:?})", self.via)
    }
}

impl fmt::Debug for StorageHttpConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::HttpRequestBody;

    #[test]
    fn only_a_plain_word_is_copied_from_an_error_body() {
        for (xml, word) in [
            (
                "<Error><Code>AccessDenied</Code></Error>",
                Some("AccessDenied"),
            ),
            ("<Error><Code>a key: AKIA1</Code></Error>", None),
            ("<Code></Code>", None),
            ("not found", None),
        ] {
            assert_eq!(parse_error_code(xml.as_bytes()).as_deref(), word);
        }
    }

    #[test]
    fn requests_contain_no_password_of_the_url() {
        let mut request = Request::new(HttpRequestBody::empty());
        *request.uri_mut() = "http://user:secret@host:81/a/b?c".parse().unwrap();
        let one = to_wire_format(&request, false).unwrap();
        assert_eq!(one.uri(), "/a/b?c");
        assert_eq!(one.headers()["host"], "host:81");
        let two = to_wire_format(&request, true).unwrap();
        assert_eq!(two.uri(), "http://host:81/a/b?c");
    }
}
