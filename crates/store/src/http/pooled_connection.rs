//! A connection that one request is using.

use super::TransportError;
use super::http2::Http2Stream;
use super::pool::HostConnections;
use crate::pipe_pool::{Pipe, SpliceOutcome};
use bytes::Bytes;
use http::response::Parts;
use http1::HeadLimits;
use object_store::client::HttpRequest;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;
use upstream::{BodyData, Connection, ExchangeRequest, RequestUpload};

/// The connection or stream that carries one request and its response.
pub(super) enum ConnectionOrStream {
    /// An HTTP/1.1 connection, which no other request uses at the same time.
    Http1(Box<Connection>),
    /// A stream of a shared HTTP/2 connection.
    Http2(Http2Stream),
}

/// A connection that one request is using. An HTTP/1.1 connection is closed when it is dropped
/// without a call of `return_to_pool`.
pub(crate) struct PooledConnection {
    carrier: ConnectionOrStream,
    /// The connection's number in the process.
    pub(crate) id: u64,
    /// Whether the connection had carried an earlier request.
    pub(crate) is_reused: bool,
    host: Arc<HostConnections>,
    _permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    pub(super) fn new(
        (carrier, id, is_reused): (ConnectionOrStream, u64, bool),
        host: &Arc<HostConnections>,
        permit: OwnedSemaphorePermit,
    ) -> PooledConnection {
        PooledConnection {
            carrier,
            id,
            is_reused,
            host: host.clone(),
            _permit: permit,
        }
    }

    /// Returns whether other requests can use the connection at the same time.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.carrier, ConnectionOrStream::Http2(_))
    }

    /// Sends no new requests on a shared connection. Does nothing for other connections, because no
    /// other request can use them.
    pub(super) fn retire_if_shared(&self) {
        if self.is_shared() {
            self.host.http2.retire_connection(self.id);
        }
    }

    /// Returns whether body bytes are neither encrypted nor in HTTP/2 frames, so that they can be
    /// spliced.
    pub(super) fn is_unencrypted_http1(&self) -> bool {
        match &self.carrier {
            ConnectionOrStream::Http1(connection) => connection.is_unencrypted(),
            ConnectionOrStream::Http2(_) => false,
        }
    }

    /// Sends a request and waits for the head of its response. `expected_bytes` is the likely
    /// length of the response's body.
    pub(super) async fn exchange(
        &mut self,
        request: &HttpRequest,
        expected_bytes: usize,
    ) -> Result<Parts, TransportError> {
        match &mut self.carrier {
            ConnectionOrStream::Http1(connection) => {
                exchange_http1(connection, request, expected_bytes).await
            }
            ConnectionOrStream::Http2(stream) => stream.exchange(request).await,
        }
    }

    /// Returns the next bytes of the body, or `None` at the end of the body.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        match &mut self.carrier {
            ConnectionOrStream::Http1(connection) => {
                connection.poll_data(cx).map_err(TransportError::from)
            }
            ConnectionOrStream::Http2(stream) => stream.poll_data(cx),
        }
    }

    /// Completes when a part of the body or its end can be read. For HTTP/2, only a read can find
    /// out whether bytes are available, so this method completes at once.
    pub(super) fn poll_readable(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        match &mut self.carrier {
            ConnectionOrStream::Http1(connection) => {
                connection.poll_readable(cx).map_err(TransportError::from)
            }
            ConnectionOrStream::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    /// Returns the next bytes of the body, or `None` at the end of the body. The bytes are spliced
    /// into `pipe` if possible.
    pub(super) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<BodyData, TransportError>>> {
        match &mut self.carrier {
            ConnectionOrStream::Http1(connection) => {
                let splice = |socket: std::os::fd::BorrowedFd<'_>, limit| {
                    Ok(match pipe.splice_from_socket(socket, limit)? {
                        SpliceOutcome::Full => 0,
                        SpliceOutcome::Bytes(count) => count,
                    })
                };
                connection
                    .poll_splice(cx, splice)
                    .map_err(TransportError::from)
            }
            ConnectionOrStream::Http2(stream) => stream.poll_data(cx).map_ok(BodyData::Bytes),
        }
    }

    /// Returns whether the response has been read to its end.
    pub(super) fn is_complete(&self) -> bool {
        match &self.carrier {
            ConnectionOrStream::Http1(connection) => connection.is_complete(),
            ConnectionOrStream::Http2(stream) => stream.is_complete(),
        }
    }

    /// Returns how many bytes of the body remain, if this number is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match &self.carrier {
            ConnectionOrStream::Http1(connection) => connection.remaining(),
            ConnectionOrStream::Http2(stream) => stream.remaining(),
        }
    }

    /// Returns the connection to the pool after the end of a response.
    pub(super) fn return_to_pool(self) {
        if let ConnectionOrStream::Http1(connection) = self.carrier {
            self.host.idle.return_connection(*connection);
        }
    }
}

async fn exchange_http1(
    connection: &mut Connection,
    request: &HttpRequest,
    expected_bytes: usize,
) -> Result<Parts, TransportError> {
    let target = request.uri().path_and_query();
    let outgoing = ExchangeRequest {
        on_interim: None,
        method: request.method(),
        target: target.map_or("/", |target| target.as_str()),
        headers: request.headers(),
        limits: HeadLimits::default(),
        expected_bytes,
    };
    let upload = RequestUpload::new(request.body().clone());
    let (head, headers) = connection.exchange(outgoing, upload).await?;
    let (mut parts, ()) = http::Response::new(()).into_parts();
    let status = http::StatusCode::from_u16(head.status);
    parts.status = status.map_err(|_| TransportError::Interrupted("invalid status".into()))?;
    parts.headers = headers;
    Ok(parts)
}
