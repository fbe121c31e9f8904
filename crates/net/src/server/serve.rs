//! One connection's life: handshake, HTTP, the handler's answers.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::census::Seat;
use super::direct::Left;
use super::{Certificates, Common, Limits, Shutdown, proxy};
use crate::body::Incoming;
use crate::conn::{InFlight, Io, Shared};
use crate::{Body, Conn, Error};

/// The least that hyper takes as the bound of its buffers.
const BUFFER_MIN: usize = 8192;

/// Why a connection broke off.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What a worker's connections have in common.
#[derive(Clone)]
pub(super) struct Service<H> {
    pub(super) common: Arc<Common>,
    pub(super) protocol: Arc<Builder<TokioExecutor>>,
    pub(super) shutdown: Shutdown,
    pub(super) handler: H,
}

/// The protocols' settings.
pub(super) fn protocol(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .max_buf_size(limits.header_bytes_max.max(BUFFER_MIN));
    let list_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    builder
        .http2()
        .max_header_list_size(list_max)
        .max_concurrent_streams(limits.streams_max);
    builder
}

impl<H, R> Service<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    /// Runs until either side ends the connection.
    pub(super) async fn connection(self, mut io: Io, shared: Arc<Shared>, _seat: Seat) {
        if self.common.trust.proxies(shared.peer().ip()) {
            match proxy::read(&mut io).await {
                Ok(client) => client
                    .into_iter()
                    .for_each(|client| shared.speaks_for(client)),
                Err(error) => {
                    tracing::debug!(connection = shared.id, peer = %shared.peer(), %error, "no PROXY header");
                    return;
                }
            }
        }
        let tls = self.common.tls.as_ref().map(Certificates::acceptor);
        let result = match tls {
            None => match self.direct(&mut io, &shared).await {
                Ok(Left::Nothing) => Ok(()),
                Ok(Left::Request) => Box::pin(self.http(io, &shared)).await,
                Err(error) => Err(error.into()),
            },
            // Boxed, as `hyper` is: else each connection keeps room for what few need.
            Some(tls) => Box::pin(self.secure(tls, io, &shared)).await,
        };
        if let Err(error) = result {
            tracing::debug!(connection = shared.id, peer = %shared.peer(), %error, "connection ended");
        }
    }

    async fn secure(&self, tls: TlsAcceptor, io: Io, shared: &Arc<Shared>) -> Result<(), Failed> {
        self.http(tls.accept(io).await?, shared).await
    }

    /// All that HTTP may be.
    async fn http<T>(&self, io: T, shared: &Arc<Shared>) -> Result<(), Failed>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answer = |request: Request<_>| {
            let answer = self.answer(request.map(Incoming::from), shared);
            async move { answer.await.map(in_map) }
        };
        let service = service_fn(answer);
        let mut connection = pin!(self.protocol.serve_connection(TokioIo::new(io), service));
        let mut told = false;
        std::future::poll_fn(|cx| {
            if shared.poll_closing(cx.waker()) && !told {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(cx)
        })
        .await
    }

    /// One request.
    pub(super) fn answer(
        &self,
        request: Request<Incoming>,
        shared: &Arc<Shared>,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + use<H, R> {
        let (number, in_flight) = shared.begin(request.version());
        let head = request.method() == Method::HEAD;
        let version = request.version();
        // There may have been a Content-Length beside it, which the parser drops unseen; then
        // somebody on the way may see another end of the request, so that the connection must end
        // with the answer (RFC 9112 section 6.1).
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let conn = Conn {
            shared: Arc::clone(shared),
            request: number,
            client: self
                .common
                .trust
                .client(shared.peer().ip(), request.headers()),
        };
        // Boxed, as what it is at is long: else it is moved from place to place for each request,
        // and each idle connection keeps room for it.
        let answer = match self.refusal(&request) {
            None => Ok(Box::pin((self.handler)(request, conn))),
            Some(error) => Err(error),
        };
        let shutdown = self.shutdown.clone();
        async move {
            let refused = answer.is_err();
            let response = match answer {
                Ok(answer) => answer.await,
                Err(error) => error.response(),
            };
            let last = refused || chunked || shutdown.is_draining();
            let last = version < Version::HTTP_2 && last;
            Ok(finish(response, head, last, in_flight))
        }
    }

    /// What no handler should have to see. The connection ends with it.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Error> {
        let max = self.common.limits.target_bytes_max;
        let bytes = request
            .uri()
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if bytes > max {
            let context = format_args!("the target has {bytes} bytes, the limit is {max}");
            return Some(Error::client(StatusCode::URI_TOO_LONG, context));
        }
        let what = malformed(request.version(), request.headers())?;
        Some(Error::client(StatusCode::BAD_REQUEST, what))
    }
}

/// What is wrong with a request of HTTP/1 that the parser lets pass.
fn malformed(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    if version >= Version::HTTP_2 {
        return None;
    }
    // RFC 9112 section 3.2.
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => Some("the request has no Host"),
        (Some(_), Some(_)) => Some("the request has more than one Host"),
        (Some(host), None) if !host.as_bytes().iter().all(may_be_of_host) => {
            Some("the request's Host is none")
        }
        _ => None,
    }
}

/// Characters of a host and a port (RFC 3986 section 3.2.2).
fn may_be_of_host(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:[]".contains(byte)
}

/// What every response needs before it leaves.
fn finish(
    mut response: Response<Body>,
    head: bool,
    last: bool,
    mut in_flight: InFlight,
) -> Response<Body> {
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
    }
    in_flight.answered();
    response.map(|body| if head { body.silenced() } else { body }.guarded(in_flight))
}

/// With all fields of its head where others look for them.
fn in_map(mut response: Response<Body>) -> Response<Body> {
    if let Some(fields) = response.body_mut().take_fields() {
        let own = std::mem::replace(response.headers_mut(), fields.map().clone());
        response.headers_mut().extend(own);
    }
    response
}

/// Says that there is no room, without waiting for a request.
pub(super) fn refuse(stream: &tokio::net::TcpStream) -> io::Result<usize> {
    const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
        Headwater-Error: internal; too many connections\r\nRetry-After: 1\r\n\
        Content-Length: 0\r\n\r\n";
    socket2::SockRef::from(stream).send(BUSY)
}
