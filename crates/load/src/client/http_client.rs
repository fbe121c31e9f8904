//! A client with a connection pool.

use super::http1_exchange::{self, DefaultHeaders, EncodedRequest, ExchangeResponse};
use super::url_credentials::inherit_credentials;
use super::{
    BodyDigest, ClientConnection, ClientRequest, ConnectionFreshness, Dialer, FailureKind,
    MemorySink, RequestFailure, RequestOutcome, http2_exchange,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::{Origin, Url};

/// Maximum number of attempts to send a request. Each attempt uses another connection. An HTTP/2
/// server that shuts down refuses requests. While a server restarts several times, a request may
/// need many attempts. The timeout of the request limits the total time.
pub(crate) const ATTEMPTS_MAX: usize = 32;

/// The client of one viewer. At most
/// [`ClientSettings::connections_max`](super::ClientSettings::connections_max) requests are in
/// flight, and at most as many connections are idle in the pool. Further requests wait.
pub struct HttpClient {
    dialer: Dialer,
    idle: Mutex<VecDeque<(Origin, ClientConnection)>>,
    free: Semaphore,
    /// Maximum number of concurrent requests, and maximum number of idle connections.
    connections_max: usize,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Creates a client without connections.
    pub fn new(dialer: &Dialer) -> HttpClient {
        HttpClient::with_connections_max(dialer, dialer.settings().connections_max)
    }

    /// Creates a client without connections. `connections_max` replaces the limit of the settings.
    pub(crate) fn with_connections_max(dialer: &Dialer, connections_max: usize) -> HttpClient {
        let connections_max = connections_max.clamp(1, Semaphore::MAX_PERMITS);
        HttpClient {
            dialer: dialer.clone(),
            idle: Mutex::default(),
            free: Semaphore::new(connections_max),
            connections_max,
        }
    }

    /// Sends a request and returns its outcome, at the latest after
    /// [`ClientSettings::timeout`](super::ClientSettings::timeout). Dropping the future cancels the
    /// request. This closes an HTTP/1.1 connection, but not a shared HTTP/2 connection.
    pub async fn execute_request(&self, request: &ClientRequest) -> RequestOutcome {
        let limit = self.dialer.settings().timeout;
        self.execute_request_within(limit, request).await
    }

    /// Sends a request like [`HttpClient::execute_request`], but with another time limit.
    pub(crate) async fn execute_request_within(
        &self,
        limit: Duration,
        request: &ClientRequest,
    ) -> RequestOutcome {
        let mut outcome = RequestOutcome::create_initial_outcome(request);
        let mut sink = MemorySink::default();
        let work = self.follow_redirects(request, &mut outcome, &mut sink);
        let failed = match tokio::time::timeout(limit, work).await {
            Ok(result) => result.err(),
            Err(_) => {
                outcome.take_response_from_sink(sink);
                self.remove_shared_connections(&outcome.url.origin());
                Some(match outcome.first_byte {
                    Some(_) => FailureKind::BodyTimeout.into(),
                    None => FailureKind::Timeout.into(),
                })
            }
        };
        if let Some(failure) = failed {
            outcome.record_failure(failure);
        }
        outcome
    }

    /// Sends the request and follows redirects. If this future is dropped, `sink` contains the
    /// received part of the last response.
    async fn follow_redirects(
        &self,
        request: &ClientRequest,
        outcome: &mut RequestOutcome,
        sink: &mut MemorySink,
    ) -> Result<(), RequestFailure> {
        let Ok(_free) = self.free.acquire().await else {
            unreachable!("the semaphore is never closed");
        };
        let mut request = Cow::Borrowed(request);
        loop {
            *sink = MemorySink {
                max: request.keep_max,
                digest: request
                    .check
                    .filter(|c| c.sha256.is_some())
                    .map(|_| BodyDigest::default()),
                progress: request.progress.clone(),
                ..MemorySink::default()
            };
            let response = self.send_or_retry(&request, outcome, sink).await;
            let digest = sink.digest.take();
            let next = response
                .as_ref()
                .ok()
                .and_then(|response| redirect_target(response.status, &outcome.url, &sink.headers));
            outcome.take_response_from_sink(std::mem::take(sink));
            let response = response?;
            outcome.status = response.status;
            outcome.body_bytes = response.body_bytes;
            outcome.first_byte = Some(response.first_byte);
            outcome.last_byte = response.last_byte;
            let Some(next) = next else {
                let check = request
                    .check
                    .filter(|_| (200..300).contains(&response.status));
                return Ok(check.map_or(Ok(()), |check| {
                    check.check_body(response.body_bytes, digest)
                })?);
            };
            outcome.redirects += 1;
            if outcome.redirects > self.dialer.settings().redirects_max {
                return Err(RequestFailure::new(FailureKind::Redirects, next));
            }
            outcome.url = next.clone();
            request.to_mut().follow_redirect(response.status, next);
            (outcome.sent, outcome.first_byte) = (None, None);
        }
    }

    /// Sends the request on an idle connection, or on a new connection if none is idle. If the
    /// connection fails and the request can be repeated, sends the request again on a new
    /// connection.
    async fn send_or_retry(
        &self,
        request: &ClientRequest,
        outcome: &mut RequestOutcome,
        sink: &mut MemorySink,
    ) -> Result<ExchangeResponse, RequestFailure> {
        let url = outcome.url.clone();
        let mut idle = self.take_idle(&url.origin());
        let mut attempts = 0;
        loop {
            attempts += 1;
            outcome.connection = None;
            let (link, freshness) = match idle.take() {
                Some(link) => (link, ConnectionFreshness::Reused),
                None => {
                    let link = self.dialer.connect_to_host(&url).await?;
                    (link, ConnectionFreshness::New)
                }
            };
            outcome.connection = Some(freshness);
            match self.send_and_receive(link, request, outcome, sink).await {
                Err(failure)
                    if attempts < ATTEMPTS_MAX
                        && failure.can_be_repeated(&request.method, outcome.sent, freshness) =>
                {
                    (outcome.sent, outcome.first_byte) = (None, None);
                }
                done => return done,
            }
        }
    }

    async fn send_and_receive(
        &self,
        link: ClientConnection,
        request: &ClientRequest,
        outcome: &mut RequestOutcome,
        sink: &mut MemorySink,
    ) -> Result<ExchangeResponse, RequestFailure> {
        let settings = self.dialer.settings();
        let defaults = DefaultHeaders {
            user_agent: &settings.user_agent,
            keep_alive: settings.keep_alive,
        };
        let url = outcome.url.clone();
        outcome.sent = None;
        let moments = (&mut outcome.sent, &mut outcome.first_byte);
        match link {
            ClientConnection::Http1(mut stream, counted) => {
                let encoded = EncodedRequest {
                    bytes: &http1_exchange::encode_request(
                        &request.method,
                        &url,
                        &request.headers,
                        &request.body,
                        &defaults,
                    ),
                    head_only: request.method == http::Method::HEAD,
                    body_max: settings.body_max,
                };
                let done = http1_exchange::send_and_receive(
                    &mut stream,
                    &encoded,
                    sink,
                    moments.0,
                    moments.1,
                )
                .await?;
                if done.keep_alive && settings.keep_alive {
                    self.give_back(url.origin(), ClientConnection::Http1(stream, counted));
                }
                Ok(done)
            }
            ClientConnection::Http2(shared) => {
                if settings.keep_alive {
                    self.give_back(url.origin(), ClientConnection::Http2(shared.clone()));
                }
                let head = http2_exchange::build_request(
                    &request.method,
                    &url,
                    &request.headers,
                    &defaults,
                )?;
                let body = request.body.clone();
                let most = settings.body_max;
                let done = http2_exchange::send_and_receive(
                    &shared, head, body, most, sink, moments.0, moments.1,
                )
                .await;
                if matches!(&done, Err(failure) if failure.fault != FailureKind::TooLong) {
                    self.remove_shared_connections(&url.origin());
                }
                done
            }
        }
    }

    /// Takes the most recently used idle connection to the origin.
    fn take_idle(&self, origin: &Origin) -> Option<ClientConnection> {
        let mut idle = self.lock_idle_connections();
        while let Some(at) = idle.iter().rposition(|(to, _)| to == origin) {
            let (_, link) = idle.remove(at)?;
            if let Some(link) = link.if_still_idle() {
                return Some(link);
            }
        }
        None
    }

    /// Removes the HTTP/2 connections to the origin, so that the next request opens a new
    /// connection. A request that timed out may be the only sign of a dead connection.
    fn remove_shared_connections(&self, origin: &Origin) {
        self.lock_idle_connections()
            .retain(|(to, link)| to != origin || !matches!(link, ClientConnection::Http2(_)));
    }

    fn give_back(&self, origin: Origin, link: ClientConnection) {
        let mut idle = self.lock_idle_connections();
        idle.push_back((origin, link));
        while idle.len() > self.connections_max {
            idle.pop_front();
        }
    }

    fn lock_idle_connections(
        &self,
    ) -> std::sync::MutexGuard<'_, VecDeque<(Origin, ClientConnection)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the target of a redirect (RFC 9110, 15.4).
pub(crate) fn redirect_target(status: u16, from: &Url, headers: &http::HeaderMap) -> Option<Url> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(http::header::LOCATION)?.to_str().ok()?;
    let mut next = from.join(location).ok()?;
    if next.origin() == from.origin() {
        inherit_credentials(&mut next, from);
    }
    Some(next)
}
