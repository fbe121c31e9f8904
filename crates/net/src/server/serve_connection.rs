//! Serves one connection: handshake, HTTP, and the handler's responses.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::ambiguous_framing::FramingMonitor;
use super::connection_limits::ConnectionSlot;
use super::http1_fast_path::FastPathExit;
use super::request_checks::{find_malformation, has_unsupported_coding, is_chunked};
use super::server_state::ServerState;
use super::{CurrentCertificates, Limits, Shutdown, proxy_protocol};
use crate::body::Incoming;
use crate::conn::{ConnectionIo, ConnectionState, InFlight};
use crate::{Body, Conn, Error};

/// The smallest buffer limit that `hyper` accepts.
const BUFFER_MIN: usize = 8192;
/// Limit on the bytes in the send buffer of an HTTP/2 stream. A full buffer accepts no further
/// frame.
const STREAM_BUFFER_BYTES: usize = 64 << 10;
/// Limit on the encrypted bytes that wait for a connection's socket. This is the size of four TLS
/// records, which one write can send.
const TLS_BUFFER_BYTES: usize = 64 << 10;

/// The error that ended a connection.
type ServeError = Box<dyn std::error::Error + Send + Sync>;

/// State that a worker's connections share.
#[derive(Clone)]
pub(super) struct ConnectionService<H> {
    pub(super) common: Arc<ServerState>,
    pub(super) protocols: Arc<ProtocolBuilders>,
    pub(super) shutdown: Shutdown,
    pub(super) handler: H,
}

/// `hyper`'s settings.
pub(super) struct ProtocolBuilders {
    /// Settings for connections whose protocol is detected from the first bytes.
    detected: Builder<TokioExecutor>,
    /// Settings for connections that have negotiated HTTP/2 in the TLS handshake. On such a
    /// connection, the server can announce the close (GOAWAY) before the client has sent a byte. If
    /// the protocol is still unknown, the server can only close the connection without an
    /// announcement.
    http2: Builder<TokioExecutor>,
}

impl ProtocolBuilders {
    pub(super) fn new(limits: &Limits) -> ProtocolBuilders {
        ProtocolBuilders {
            detected: configure_hyper(limits),
            http2: configure_hyper(limits).http2_only(),
        }
    }
}

/// Returns `hyper`'s settings for connections whose protocol is detected from the first bytes.
fn configure_hyper(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .max_buf_size(limits.header_bytes_max.max(BUFFER_MIN));
    let list_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    builder
        .http2()
        .max_header_list_size(list_max)
        .max_concurrent_streams(limits.streams_max)
        .initial_stream_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .max_send_buf_size(STREAM_BUFFER_BYTES);
    builder
}

impl<H, R> ConnectionService<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    /// Serves the connection until either side closes it.
    pub(super) async fn serve_connection(
        self,
        mut io: ConnectionIo,
        shared: Arc<ConnectionState>,
        _slot: ConnectionSlot,
    ) {
        if self
            .common
            .trust
            .sends_proxy_header(shared.effective_peer().ip())
        {
            match proxy_protocol::read_proxy_header(&mut io).await {
                Ok(client) => client
                    .into_iter()
                    .for_each(|client| shared.set_client(client)),
                Err(error) => {
                    tracing::debug!(connection = shared.id, peer = %shared.effective_peer(), %error, "closed a connection without a valid PROXY header");
                    return;
                }
            }
        }
        let tls = self.common.tls.as_ref().map(CurrentCertificates::acceptor);
        let result = match tls {
            None => match self.serve_fast_path(&mut io, &shared).await {
                Ok(FastPathExit::Nothing) => Ok(()),
                Ok(FastPathExit::Request) => {
                    Box::pin(self.serve_with_hyper(io, &shared, &self.protocols.detected)).await
                }
                Err(error) => Err(error.into()),
            },
            // The future is boxed like `hyper`'s future. Otherwise a connection without TLS would
            // also reserve memory for the TLS future.
            Some(tls) => Box::pin(self.serve_tls(tls, io, &shared)).await,
        };
        if let Err(error) = result {
            tracing::debug!(connection = shared.id, peer = %shared.effective_peer(), %error, "connection ended");
        }
    }

    async fn serve_tls(
        &self,
        tls: TlsAcceptor,
        io: ConnectionIo,
        shared: &Arc<ConnectionState>,
    ) -> Result<(), ServeError> {
        let limited = |tls: &mut rustls::ServerConnection| {
            tls.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        };
        let io = tls.accept_with(io, limited).await?;
        let is_http2 = io.get_ref().1.alpn_protocol() == Some(b"h2");
        shared.finish_handshake(is_http2);
        let protocol = match is_http2 {
            true => &self.protocols.http2,
            false => &self.protocols.detected,
        };
        self.serve_with_hyper(io, shared, protocol).await
    }

    /// Serves the requests of a connection through `hyper`.
    async fn serve_with_hyper<T>(
        &self,
        io: T,
        shared: &Arc<ConnectionState>,
        protocol: &Builder<TokioExecutor>,
    ) -> Result<(), ServeError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let send_buffer_bytes = self.common.limits.connection_send_buffer_bytes;
        shared.start_copying(&self.common.send_memory, send_buffer_bytes);
        let serve_stream = |request: Request<_>| {
            let ServerState { overload, .. } = &*self.common;
            let refused = overload.refuses_stream(&request, self.common.essential_paths);
            let handling =
                (!refused).then(|| self.check_and_handle(request.map(Incoming::from), shared));
            async move {
                match handling {
                    Some(handling) => handling
                        .await
                        .map(unpack_serialized_fields)
                        .map_err(|never| match never {}),
                    // `hyper` resets the stream with the reason in this error.
                    None => Err(h2::Error::from(h2::Reason::REFUSED_STREAM)),
                }
            }
        };
        let service = service_fn(serve_stream);
        let io = TokioIo::new(FramingMonitor::new(io, Arc::clone(shared)));
        let mut connection = pin!(protocol.serve_connection(io, service));
        let mut is_closing = false;
        std::future::poll_fn(|cx| {
            let closing = shared.poll_closing(cx.waker());
            // Polls before `graceful_shutdown`, so that `hyper` reads a request that has already
            // arrived. Otherwise `hyper` would drop the bytes of the first request.
            let polled = connection.as_mut().poll(cx);
            if polled.is_ready() || !closing || is_closing {
                return polled;
            }
            is_closing = true;
            connection.as_mut().graceful_shutdown();
            connection.as_mut().poll(cx)
        })
        .await
    }

    /// Checks one request and passes it to the handler.
    pub(super) fn check_and_handle(
        &self,
        request: Request<Incoming>,
        shared: &Arc<ConnectionState>,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + use<H, R> {
        let (number, in_flight) = shared.begin_request(request.version());
        let head = request.method() == Method::HEAD;
        let version = request.version();
        // Another hop may find the end of a request with a transfer coding at a different byte. The
        // connection therefore closes after the response (RFC 9112 section 6.1).
        let chunked = is_chunked(request.headers());
        let conn = Conn {
            shared: Arc::clone(shared),
            request: number,
            client: self
                .common
                .trust
                .client_address(shared.effective_peer().ip(), request.headers()),
        };
        // The handler's future is boxed because it is large. Otherwise each request would move the
        // future, and each idle connection would reserve memory for the future.
        let handling = match self.find_refusal(&request, shared, conn.client, chunked) {
            None => Ok(Box::pin((self.handler)(request, conn))),
            Some(error) => Err(error),
        };
        let shutdown = self.shutdown.clone();
        async move {
            // After a 429, the connection stays open, because a new connection would cost more than
            // the next request on the open connection.
            let refused = handling
                .as_ref()
                .is_err_and(|error| error.status != StatusCode::TOO_MANY_REQUESTS);
            let mut response = match handling {
                Ok(handling) => handling.await,
                Err(error) => error.to_response(),
            };
            let last = refused || chunked || shutdown.is_draining();
            let last = version < Version::HTTP_2 && last;
            finish_response(&mut response, head, last, in_flight);
            Ok(response)
        }
    }

    /// Returns the error for a request that must not reach a handler. After an error other than
    /// 429, an HTTP/1 connection closes.
    fn find_refusal(
        &self,
        request: &Request<Incoming>,
        shared: &ConnectionState,
        client: IpAddr,
        chunked: bool,
    ) -> Option<Error> {
        let ServerState { overload, .. } = &*self.common;
        if let Some(error) = overload.find_refusal(request, self.common.essential_paths) {
            return Some(error);
        }
        // A trusted proxy's own address represents many clients and therefore has no rate limit.
        if !self.common.trust.is_forwarder(client)
            && let Some(error) = self.common.request_rates.admit_request(client)
        {
            return Some(error);
        }
        let max = self.common.limits.target_bytes_max;
        let bytes = request
            .uri()
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if bytes > max {
            let context = format_args!("the target has {bytes} bytes, the limit is {max}");
            return Some(Error::new_client_error(StatusCode::URI_TOO_LONG, context));
        }
        if chunked && shared.has_ambiguous_length() {
            let what = "the request has both Content-Length and Transfer-Encoding";
            return Some(Error::new_client_error(StatusCode::BAD_REQUEST, what));
        }
        if let Some(what) = find_malformation(request) {
            return Some(Error::new_client_error(StatusCode::BAD_REQUEST, what));
        }
        (chunked && has_unsupported_coding(request.headers())).then(|| {
            let what = "no transfer coding except chunked is supported";
            Error::new_client_error(StatusCode::NOT_IMPLEMENTED, what)
        })
    }
}

/// Completes a response. Announces the close of the connection, handles HEAD, and attaches the
/// in-flight guard.
fn finish_response(response: &mut Response<Body>, head: bool, last: bool, mut in_flight: InFlight) {
    if last {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if head {
        let len = response.body().len();
        if len > 0 {
            response
                .headers_mut()
                .entry(CONTENT_LENGTH)
                .or_insert_with(|| len.into());
        }
        response.body_mut().discard_bytes_for_head();
    }
    in_flight.mark_responded();
    response.body_mut().hold_guard(in_flight);
}

/// Moves the serialized fields into the header map, because `hyper` expects all fields there.
fn unpack_serialized_fields(mut response: Response<Body>) -> Response<Body> {
    if let Some(fields) = response.body_mut().take_fields() {
        let unserialized = std::mem::replace(response.headers_mut(), fields.header_map().clone());
        response.headers_mut().extend(unserialized);
    }
    response
}

/// Sends 503 without waiting for a request.
pub(super) fn refuse_connection(stream: &tokio::net::TcpStream) -> io::Result<usize> {
    const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
        Headwater-Error: internal; too many connections\r\nRetry-After: 1\r\n\
        Content-Length: 0\r\n\r\n";
    socket2::SockRef::from(stream).send(BUSY)
}
