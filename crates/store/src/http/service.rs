//! Requests of `object_store`, sent over our connections.

use super::Failed;
use super::body::Watched;
use super::call::{begin, hand_over, head_only, note};
use super::connect::Target;
use super::lease::Lease;
use super::pool::Pool;
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
use std::time::Instant;

/// Redirects followed, all on one host.
const REDIRECTS_MAX: usize = 3;
/// Most read of an answer that says why there is no object.
const REASON_BYTES_MAX: usize = 16 << 10;
/// Most read of an answer that is no range of an object: a listing, credentials.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// What such an answer is likely to have.
const TEXT_BYTES: usize = 14 << 10;

/// Sends requests to where their URLs say, or through a server that stands before the storage.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Arc<Pool>,
    via: Option<Target>,
    /// Whether redirects within a host are followed; signed requests cannot be.
    follow: bool,
}

/// What `object_store` is given instead of its own client.
#[derive(Clone)]
pub(crate) struct Factory(pub(crate) Client);

impl Client {
    pub(crate) fn new(pool: Arc<Pool>, follow: bool) -> Client {
        Client {
            pool,
            via: None,
            follow,
        }
    }

    /// The same requests, `Host` included, sent to another server. `None` if `url` names none.
    pub(crate) fn through(&self, url: &Uri) -> Option<Client> {
        let via = Some(Target::of(url)?);
        Some(Client {
            via,
            ..self.clone()
        })
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Failed> {
        let (parts, body) = request.into_parts();
        let ranged = begin(parts.headers.contains_key(header::RANGE));
        let mut uri = parts.uri.clone();
        for _ in 0..=REDIRECTS_MAX {
            let mut again = Request::new(body.clone());
            *again.method_mut() = parts.method.clone();
            *again.headers_mut() = parts.headers.clone();
            *again.uri_mut() = uri.clone();
            let (parts, lease) = self.exchange(again).await?;
            note(|notes| {
                notes.status = Some(parts.status.as_u16());
                notes.answered = Some(Instant::now());
            });
            match redirected(&uri, &parts) {
                Some(_) if !self.follow => {
                    let what = "another region or address is asked for (check both)";
                    return Err(Failed::Redirect(what.into()));
                }
                Some(to) => uri = to?,
                None => return self.take(ranged, parts, lease).await,
            }
        }
        Err(Failed::Redirect("again and again".into()))
    }

    /// One request and the head of its answer.
    async fn exchange(&self, request: HttpRequest) -> Result<(Parts, Lease), Failed> {
        let target = match &self.via {
            Some(via) => via.clone(),
            None => Target::of(request.uri())
                .ok_or_else(|| Failed::Connect("not an http or https URL".into()))?,
        };
        match self.attempt(&target, &request, None).await {
            // A kept connection that the other end closed just now: nothing was answered, and
            // the request is one that may be repeated.
            Err((Failed::Cut(_), Some(kept))) => {
                let second = self.attempt(&target, &request, Some(kept)).await;
                second.map_err(|(failed, _)| failed)
            }
            outcome => outcome.map_err(|(failed, _)| failed),
        }
    }

    /// In an error: the connection's number if it was a kept one. `failed`: such a one, which is
    /// not to be tried again.
    async fn attempt(
        &self,
        target: &Target,
        request: &HttpRequest,
        failed: Option<u64>,
    ) -> Result<(Parts, Lease), (Failed, Option<u64>)> {
        let lease = self.pool.lease(target, failed).await;
        let mut lease = lease.map_err(|failed| (failed, None))?;
        note(|notes| notes.connection = Some((lease.number, lease.reused)));
        let request = on_the_wire(request, lease.is_shared()).map_err(|failed| (failed, None))?;
        let wait = self.pool.transport().timeouts.first_byte;
        let expected = match head_only() {
            true => 0,
            false => expected(request.headers()),
        };
        let asked = lease.ask(&request, expected);
        match tokio::time::timeout(wait, asked).await {
            Ok(Ok(parts)) => Ok((parts, lease)),
            Ok(Err(failed)) => Err((failed, lease.reused.then_some(lease.number))),
            Err(_) => Err((Failed::FirstByteTimeout, None)),
        }
    }

    /// The answer as `object_store` shall see it. `ranged`: a part of an object was asked for.
    async fn take(
        &self,
        ranged: bool,
        mut parts: Parts,
        lease: Lease,
    ) -> Result<HttpResponse, Failed> {
        say_length(&mut parts);
        let bounded = parts.status == StatusCode::PARTIAL_CONTENT;
        let bytes_max = if bounded { u64::MAX } else { TEXT_BYTES_MAX };
        let whole = parts.status == StatusCode::OK;
        let empty = parts.headers.get(header::CONTENT_LENGTH);
        if whole && ranged && empty.is_some_and(|len| len == "0") {
            // Of an empty object there is no range; some servers say so, some give all of it.
            parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
            note(|notes| notes.status = Some(parts.status.as_u16()));
        } else if whole && ranged {
            // The body is not looked at: it may be the whole film.
            let body = HttpResponseBody::from(Vec::new());
            return Ok(Response::from_parts(parts, body));
        }
        let transport = self.pool.transport();
        let watched = Watched::new(lease, transport.pooled, transport.timeouts, bytes_max);
        if parts.status.is_client_error() || parts.status.is_server_error() {
            // For our own message only; object_store would quote all of it.
            let reason = Limited::new(watched, REASON_BYTES_MAX).collect().await;
            let code = reason.ok().and_then(|text| code(&text.to_bytes()));
            note(|notes| notes.code = code);
            let body = HttpResponseBody::from(Vec::new());
            return Ok(Response::from_parts(parts, body));
        }
        let left = match ranged && bounded {
            true => hand_over(watched),
            false => Some(watched),
        };
        let body = left.map_or_else(|| HttpResponseBody::from(Vec::new()), HttpResponseBody::new);
        Ok(Response::from_parts(parts, body))
    }
}

/// As a server is asked itself: by HTTP/1.1 with path and query, and `Host`; by HTTP/2 (`shared`)
/// with scheme and authority (RFC 9113 section 8.3.1).
fn on_the_wire(request: &HttpRequest, shared: bool) -> Result<HttpRequest, Failed> {
    let (uri, mut request) = (request.uri(), request.clone());
    let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
    // Never the name and password that a URL may hold.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let no_request = |_| Failed::Connect("a path that no request can name".into());
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
        .map_err(|_| Failed::Connect("a host that no header can name".into()))?;
    request.headers_mut().insert(header::HOST, host);
    let uri = Uri::builder().path_and_query(target);
    *request.uri_mut() = uri.build().map_err(no_request)?;
    Ok(request)
}

/// Bytes that an answer's body is likely to have.
fn expected(headers: &HeaderMap) -> usize {
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let ends = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ends.and_then(|(first, last)| usize::checked_sub(last, first)?.checked_add(1))
        .unwrap_or(TEXT_BYTES)
}

/// `object_store` reads no part without a Content-Length, which a proxy may have left out: the
/// Content-Range says it, too. Whether so many bytes come is looked at as they do.
fn say_length(parts: &mut Parts) {
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

/// Where an answer sends us, if it does: to the same server only.
fn redirected(from: &Uri, parts: &Parts) -> Option<Result<Uri, Failed>> {
    if !matches!(parts.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = parts.headers.get(header::LOCATION);
    let location = location.and_then(|value| value.to_str().ok()).unwrap_or("");
    let refused = |what: &str| Some(Err(Failed::Redirect(what.to_owned())));
    let base = url::Url::parse(&from.to_string());
    let Ok(to) = base.and_then(|base| base.join(location)) else {
        return refused("to no URL");
    };
    match to.as_str().parse::<Uri>() {
        Ok(to) if Target::of(&to) == Target::of(from) => Some(Ok(to)),
        _ => refused("to another server; serve from that one instead"),
    }
}

/// The storage's own word for what is wrong, from its XML: letters only, so that nothing else of
/// its answer is passed on.
fn code(xml: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(xml).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let plain =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphabetic());
    plain.then(|| code.to_owned())
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.send(request).await.map_err(|failed| {
            note(|notes| notes.failed = Some(failed.clone()));
            failed.into()
        })
    }
}

impl HttpConnector for Factory {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client(via {:?})", self.via)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::HttpRequestBody;

    #[test]
    fn only_a_plain_word_is_taken_from_an_error() {
        for (xml, word) in [
            (
                "<Error><Code>AccessDenied</Code></Error>",
                Some("AccessDenied"),
            ),
            ("<Error><Code>a key: AKIA1</Code></Error>", None),
            ("<Code></Code>", None),
            ("not found", None),
        ] {
            assert_eq!(code(xml.as_bytes()).as_deref(), word);
        }
    }

    #[test]
    fn the_wire_sees_no_password() {
        let mut request = Request::new(HttpRequestBody::empty());
        *request.uri_mut() = "http://user:secret@host:81/a/b?c".parse().unwrap();
        let one = on_the_wire(&request, false).unwrap();
        assert_eq!(one.uri(), "/a/b?c");
        assert_eq!(one.headers()["host"], "host:81");
        let two = on_the_wire(&request, true).unwrap();
        assert_eq!(two.uri(), "http://host:81/a/b?c");
    }
}
