//! HTTP/2 connections, which carry several requests at once.

use super::TransportError;
use bytes::Bytes;
use http::response::Parts;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use object_store::client::{HttpRequest, HttpRequestBody};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use upstream::OpenedStream;

/// Flow-control windows (RFC 9113 section 5.2). They limit how many unread bytes a server may send
/// on one stream, and on all streams of a connection together.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
const FRAME_BYTES_MAX: u32 = 256 << 10;

/// The HTTP/2 connection to an address. All requests to this address share the connection.
#[derive(Default)]
pub(super) struct SharedConnection {
    /// Locked while the connection is opened, so that all other requests wait for the connection.
    current: Mutex<Option<OpenHttp2>>,
    is_refused: AtomicBool,
    /// The highest number of a connection that new requests must not use. Numbers start at 1.
    retired: AtomicU64,
}

struct OpenHttp2 {
    sender: SendRequest<HttpRequestBody>,
    id: u64,
    last_used: Instant,
    /// Each stream holds a clone, so the reference count shows whether the connection is in use.
    stream_count: Arc<()>,
}

/// One request and its response on a shared connection.
pub(super) struct Http2Stream {
    sender: SendRequest<HttpRequestBody>,
    incoming: Option<Incoming>,
    _counted: Arc<()>,
}

/// A new connection with the protocol that the server chose.
pub(super) enum NegotiatedConnection {
    Http1(OpenedStream),
    Http2(SendRequest<HttpRequestBody>, u64),
}

/// The stream for one request.
pub(super) enum StreamOrNewConnection {
    /// A new connection, because the server does not offer HTTP/2.
    Http1(OpenedStream),
    /// A stream, the connection's number, and whether the connection had carried an earlier
    /// request.
    Http2(Http2Stream, u64, bool),
}

/// Starts HTTP/2 if the server chose this protocol. A task on the current runtime then drives the
/// connection.
pub(super) async fn negotiate(
    opened: OpenedStream,
) -> Result<NegotiatedConnection, TransportError> {
    if !opened.is_http2() {
        return Ok(NegotiatedConnection::Http1(opened));
    }
    let handshake = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .handshake(TokioIo::new(opened.stream));
    let (sender, connection) = handshake
        .await
        .map_err(|error| interruption_error(&error))?;
    let (id, guard) = (opened.guard.connection_number(), opened.guard);
    tokio::spawn(async move {
        // Ignores the error, because each request on the connection also reports it.
        let _ = connection.await;
        drop(guard);
    });
    Ok(NegotiatedConnection::Http2(sender, id))
}

impl SharedConnection {
    /// Returns whether to offer HTTP/2. Returns `false` after the server has chosen HTTP/1.1
    /// although both protocols were offered.
    pub(super) fn can_negotiate_http2(&self) -> bool {
        !self.is_refused.load(Relaxed)
    }

    /// Returns a stream on the shared connection. Awaits `open` for a new connection if no
    /// connection is open, or if the open connection is retired. Also awaits `open` if the
    /// connection's number is `failed` or lower, because the request has failed on connection
    /// `failed`.
    pub(super) async fn acquire(
        &self,
        failed: Option<u64>,
        open: impl Future<Output = Result<NegotiatedConnection, TransportError>>,
    ) -> Result<StreamOrNewConnection, TransportError> {
        let mut current = self.current.lock().await;
        let is_usable = |open: &&mut OpenHttp2| {
            !open.sender.is_closed()
                && self.retired.load(Relaxed) < open.id
                && failed.is_none_or(|failed| failed < open.id)
        };
        if let Some(open) = current.as_mut().filter(is_usable) {
            open.last_used = Instant::now();
            return Ok(StreamOrNewConnection::Http2(
                open.start_stream(),
                open.id,
                true,
            ));
        }
        match open.await? {
            NegotiatedConnection::Http1(opened) => {
                self.is_refused.store(true, Relaxed);
                Ok(StreamOrNewConnection::Http1(opened))
            }
            NegotiatedConnection::Http2(sender, id) => {
                let open = current.insert(OpenHttp2 {
                    sender,
                    id,
                    last_used: Instant::now(),
                    stream_count: Arc::default(),
                });
                Ok(StreamOrNewConnection::Http2(open.start_stream(), id, false))
            }
        }
    }

    /// Sends no new requests on connection `id`. The requests on the connection continue.
    pub(super) fn retire_connection(&self, id: u64) {
        self.retired.fetch_max(id, Relaxed);
    }

    /// Closes the connection if it has been idle for too long.
    pub(super) fn close_if_idle(&self, idle_max: Duration) {
        // If the lock is held, a request is about to use the connection.
        if let Ok(mut current) = self.current.try_lock()
            && current.as_ref().is_some_and(|open| open.is_idle(idle_max))
        {
            *current = None;
        }
    }
}

impl OpenHttp2 {
    fn start_stream(&self) -> Http2Stream {
        Http2Stream {
            sender: self.sender.clone(),
            incoming: None,
            _counted: self.stream_count.clone(),
        }
    }

    fn is_idle(&self, idle_max: Duration) -> bool {
        let is_unused = Arc::strong_count(&self.stream_count) == 1;
        self.sender.is_closed() || (is_unused && self.last_used.elapsed() >= idle_max)
    }
}

impl Http2Stream {
    pub(super) async fn exchange(
        &mut self,
        request: &HttpRequest,
    ) -> Result<Parts, TransportError> {
        let response = self.sender.send_request(request.clone()).await;
        let response = response.map_err(|error| interruption_error(&error))?;
        let (parts, incoming) = response.into_parts();
        self.incoming = Some(incoming);
        Ok(parts)
    }

    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(incoming).poll_frame(cx));
        Poll::Ready(frame.map(|frame| match frame {
            // A frame with trailers counts as zero bytes.
            Ok(frame) => Ok(frame.into_data().unwrap_or_default()),
            Err(error) => Err(interruption_error(&error)),
        }))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        self.incoming.as_ref()?.size_hint().exact()
    }
}

fn interruption_error(error: &hyper::Error) -> TransportError {
    let source = std::error::Error::source(error);
    TransportError::Interrupted(source.map_or_else(|| error.to_string(), ToString::to_string))
}
