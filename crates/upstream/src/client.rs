//! A client for one server, with timeouts and a list of idle connections per worker. A request that
//! is safe to repeat is retried once on a new connection.

use crate::response::UpstreamResponseParts;
use crate::{
    ALPN_HTTP1, ClientCertificate, Connection, ConnectionCounts, Connector, ExchangeError,
    ExchangeRequest, IdleConnections, ReadBuffers, RequestUpload, ServerAddress,
    TrustedAuthorities, UpstreamError, UpstreamResponse, UpstreamTiming, client_config,
};
use http::{Request, Uri};
use http1::HeadLimits;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Maximum number of idle connections per worker. If there are more, the least recently used
/// connections are closed.
const IDLE_CONNECTIONS_MAX: usize = 256;
/// Time allowed for sending a request's body, in addition to the first-byte timeout.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of fields in a response head.
const HEAD_FIELDS_MAX: usize = 100;
/// Body length that is assumed until the response head arrives. This length determines the length
/// of the read buffer. The sum of this length and the space reserved for the head is the length of
/// the shortest recycled buffer.
const EXPECTED_BYTES: usize = 14 << 10;

/// Limits on the time and memory that one server may consume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// Maximum time to open a connection, including TLS. This is also the maximum time that a
    /// request waits while `requests_max` requests are in flight.
    pub connect_timeout: Duration,
    /// Maximum time from sending the request until the response head arrives.
    pub first_byte_timeout: Duration,
    /// Maximum time without new data of a response body.
    pub body_gap_timeout: Duration,
    /// Maximum time that a connection stays open while idle. This should be shorter than the
    /// server's idle timeout, so that requests are rarely sent on a connection that the server is
    /// closing.
    pub idle_timeout: Duration,
    /// Maximum length of a response head in bytes.
    pub head_bytes_max: usize,
    /// Maximum number of requests in flight.
    pub requests_max: usize,
}

impl Default for UpstreamLimits {
    fn default() -> UpstreamLimits {
        UpstreamLimits {
            connect_timeout: Duration::from_secs(3),
            first_byte_timeout: Duration::from_secs(15),
            body_gap_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(50),
            head_bytes_max: 64 << 10,
            requests_max: 1024,
        }
    }
}

/// A client for one server.
pub struct UpstreamClient {
    authority: String,
    /// Name for error messages, which contains the authority and, if set, the fixed address.
    name: String,
    address: ServerAddress,
    /// Fixed address for all connections. `None` if the host name is resolved.
    at: Option<SocketAddr>,
    connector: Connector,
    /// There is one list per worker, because a connection stays on the runtime that opened it.
    idle: Vec<Arc<IdleConnections>>,
    buffers: Arc<ReadBuffers>,
    limits: UpstreamLimits,
    on_open: Box<dyn Fn() + Send + Sync>,
    permits: Arc<Semaphore>,
}

/// A request of which nothing was sent, so that it may be sent to another server. `None` if the
/// request may have reached the server.
pub type UnsentRequest = Option<Box<Request<Option<RequestUpload>>>>;

impl UpstreamClient {
    /// Creates a client for the server at this `http` or `https` URL.
    ///
    /// # Errors
    /// When the URL names no server, or contains a path or a user name, or when the certificate of
    /// an authority is invalid.
    pub fn new(
        url: &Uri,
        workers: usize,
        limits: UpstreamLimits,
        authorities: &TrustedAuthorities,
    ) -> io::Result<UpstreamClient> {
        let (authority, address) = parse_server_url(url)?;
        let tls = client_config(authorities, &[ALPN_HTTP1], true)?;
        let counts = Arc::new(ConnectionCounts::default());
        let idle = || IdleConnections::for_one_runtime(limits.idle_timeout, IDLE_CONNECTIONS_MAX);
        Ok(UpstreamClient {
            name: authority.clone(),
            authority,
            address,
            at: None,
            connector: Connector::new(tls, limits.connect_timeout, counts),
            idle: (0..workers.max(1)).map(|_| Arc::new(idle())).collect(),
            buffers: Arc::default(),
            permits: Arc::new(Semaphore::new(limits.requests_max)),
            limits,
            on_open: Box::new(|| {}),
        })
    }

    /// Returns host and port as written in the URL.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Connects to this address instead of resolving the URL's host name. The `Host` header and the
    /// TLS server name do not change.
    #[must_use]
    pub fn with_fixed_address(self, at: SocketAddr) -> UpstreamClient {
        UpstreamClient {
            name: format!("{} ({at})", self.authority),
            at: Some(at),
            ..self
        }
    }

    /// Presents this certificate if the server requests a client certificate.
    #[must_use]
    pub fn with_certificate(self, certificate: ClientCertificate) -> UpstreamClient {
        UpstreamClient {
            connector: self.connector.with_certificate(certificate),
            ..self
        }
    }

    /// Calls `on_open` for each connection that is opened.
    #[must_use]
    pub fn with_open_hook(self, on_open: impl Fn() + Send + Sync + 'static) -> UpstreamClient {
        let on_open = Box::new(on_open);
        UpstreamClient { on_open, ..self }
    }

    /// Sends a request without a body on a connection of this worker. If a pooled connection fails
    /// before the response head arrives, the request is sent again on a new connection. The request
    /// must therefore be safe to repeat.
    ///
    /// # Errors
    /// When no response head is received.
    pub async fn send_repeatable(
        &self,
        worker: usize,
        request: &Request<()>,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let permit = self.acquire_permit().await?;
        if let Some(connection) = self.idle_connections_of_worker(worker).take_connection() {
            match self
                .exchange_once(worker, connection, copy_bodiless(request), None)
                .await
            {
                Ok(parts) => return Ok(UpstreamResponse::new(parts, permit)),
                Err((error, _)) if error.is_timeout => return Err(error),
                Err(_) => {}
            }
        }
        let sent = self
            .send_on_new_connection(worker, copy_bodiless(request))
            .await;
        let parts = sent.map_err(|(error, _)| error)?;
        Ok(UpstreamResponse::new(parts, permit))
    }

    /// Sends a request that must not be repeated. If a pooled connection fails before any byte of
    /// the request was written, the request is sent on a new connection.
    ///
    /// # Errors
    /// When no response head is received. The error contains the request if no byte of it was sent.
    pub async fn send_once(
        &self,
        worker: usize,
        mut request: Request<Option<RequestUpload>>,
    ) -> Result<UpstreamResponse, (UpstreamError, UnsentRequest)> {
        let permit = match self.acquire_permit().await {
            Ok(permit) => permit,
            Err(error) => return Err((error, Some(Box::new(request)))),
        };
        if let Some(connection) = self.idle_connections_of_worker(worker).take_connection() {
            match self.exchange_once(worker, connection, request, None).await {
                Ok(parts) => return Ok(UpstreamResponse::new(parts, permit)),
                Err((_, Some(unsent))) => request = *unsent,
                failed @ Err(_) => return failed.map(|parts| UpstreamResponse::new(parts, permit)),
            }
        }
        let sent = self.send_on_new_connection(worker, request).await;
        sent.map(|parts| UpstreamResponse::new(parts, permit))
    }

    /// Closes idle connections that have been idle for too long or that the server has closed.
    pub fn sweep_idle_connections(&self) {
        self.idle.iter().for_each(|idle| idle.sweep());
    }

    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, UpstreamError> {
        let waiting = self.permits.clone().acquire_owned();
        let waited = timeout(self.limits.connect_timeout, waiting).await;
        waited
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| UpstreamError {
                is_timeout: true,
                may_have_arrived: false,
                is_upload: false,
                is_request_limit: true,
                reason: format!(
                    "{}: {} requests are in flight, and none finished within {:?}",
                    self.name, self.limits.requests_max, self.limits.connect_timeout
                ),
            })
    }

    async fn send_on_new_connection(
        &self,
        worker: usize,
        request: Request<Option<RequestUpload>>,
    ) -> Result<UpstreamResponseParts, (UpstreamError, UnsentRequest)> {
        let started = Instant::now();
        match self.connector.connect_to(&self.address, self.at).await {
            Ok(opened) => {
                (self.on_open)();
                let connection = Connection::new(opened, self.buffers.clone());
                let connect = Some(started.elapsed());
                self.exchange_once(worker, connection, request, connect)
                    .await
            }
            Err(error) => {
                let is_timeout = matches!(error, crate::ConnectError::TimedOut);
                let error = UpstreamError {
                    is_timeout,
                    may_have_arrived: false,
                    is_upload: false,
                    is_request_limit: false,
                    reason: match is_timeout {
                        true => format!(
                            "{}: no connection within {:?}",
                            self.name, self.limits.connect_timeout
                        ),
                        false => format!("{}: {error}", self.name),
                    },
                };
                Err((error, Some(Box::new(request))))
            }
        }
    }

    async fn exchange_once(
        &self,
        worker: usize,
        mut connection: Connection,
        mut request: Request<Option<RequestUpload>>,
        connect: Option<Duration>,
    ) -> Result<UpstreamResponseParts, (UpstreamError, UnsentRequest)> {
        let upload = request.body_mut().take();
        let mut patience = self.limits.first_byte_timeout;
        if upload.is_some() {
            patience += UPLOAD_TIMEOUT;
        }
        let started = Instant::now();
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let outgoing = ExchangeRequest {
            method: request.method(),
            target,
            headers: request.headers(),
            limits: HeadLimits {
                bytes_max: self.limits.head_bytes_max,
                fields_max: HEAD_FIELDS_MAX,
            },
            expected_bytes: EXPECTED_BYTES,
            on_interim: request.extensions().get(),
        };
        let error = |is_timeout, may_have_arrived, is_upload, reason| UpstreamError {
            is_timeout,
            may_have_arrived,
            is_upload,
            is_request_limit: false,
            reason: format!("{}: {reason}", self.name),
        };
        let response = match timeout(patience, connection.exchange(outgoing, upload)).await {
            Ok(response) => response,
            Err(_) if connection.awaits_upload_data() => {
                let reason = format!("the request's body is incomplete after {patience:?}");
                return Err((error(true, true, true, reason), None));
            }
            Err(_) => {
                let reason = format!("no response within {patience:?}");
                return Err((error(true, true, false, reason), None));
            }
        };
        let (head, headers) = response.map_err(|failed| {
            let is_upload = matches!(failed, ExchangeError::Upload(_));
            let may_have_arrived = connection.has_sent_bytes();
            if !may_have_arrived {
                *request.body_mut() = connection.take_upload();
            }
            let unsent = (!may_have_arrived).then(|| Box::new(request));
            let reason = failed.to_string();
            (error(false, may_have_arrived, is_upload, reason), unsent)
        })?;
        Ok(UpstreamResponseParts {
            status: head.status,
            headers,
            connection,
            timing: UpstreamTiming {
                is_reused: connect.is_none(),
                connect: connect.unwrap_or_default(),
                first_byte: started.elapsed(),
            },
            body_gap_timeout: self.limits.body_gap_timeout,
            idle: self.idle_connections_of_worker(worker).clone(),
        })
    }

    pub(crate) fn idle_connections_of_worker(&self, worker: usize) -> &Arc<IdleConnections> {
        &self.idle[worker % self.idle.len()]
    }
}

impl fmt::Debug for UpstreamClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamClient({})", self.name)
    }
}

fn copy_bodiless(request: &Request<()>) -> Request<Option<RequestUpload>> {
    let mut copy = Request::new(None);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
}

/// Returns the authority and the server address of a URL that contains only scheme, host and port.
fn parse_server_url(url: &Uri) -> io::Result<(String, ServerAddress)> {
    let invalid = |reason: &str| {
        let reason = format!("{url}: {reason}");
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    };
    let address = ServerAddress::from_uri(url)
        .ok_or_else(|| invalid("expected a server as http://HOST[:PORT] or https://HOST[:PORT]"))?;
    let authority = url.authority().ok_or_else(|| invalid("no host"))?;
    if authority.as_str().contains('@') {
        return Err(invalid("a server URL has no user name; remove it"));
    }
    let target = url.path_and_query().map(|target| target.as_str());
    if !matches!(target, None | Some("/" | "")) {
        return Err(invalid("a server has no path; remove it"));
    }
    Ok((authority.to_string(), address))
}
