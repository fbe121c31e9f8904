//! Serves the usual requests of players, without the use of `hyper`.
//!
//! This path serves GET and HEAD requests without a body. The head must be complete in the received
//! bytes, and its Connection field may contain only `close` or, in HTTP/1.1, `keep-alive`. Any
//! other request moves the connection to `hyper`, together with the unread bytes.
//!
//! Both paths use the same parser and are equally strict. A request with Content-Length,
//! Transfer-Encoding or Upgrade is always served by `hyper`. A connection holds no buffer while it
//! waits for a request or for a client that reads slowly.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Request, Response, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::interim::InterimWriter;
use self::request::FastPathRequest;
use self::response_writer::ResponseWriter;
use super::serve_connection::ConnectionService;
use crate::body::Incoming;
use crate::conn::{ConnectionIo, ConnectionState};
use crate::{Body, Conn};

mod interim;
mod request;
mod response_head;
mod response_writer;

/// Parses a plain request, and returns the request with the length of its head.
#[cfg(any(test, fuzzing))]
pub(crate) fn parse_fast_path_request(bytes: &[u8]) -> Option<(Request<Incoming>, usize)> {
    request::parse_request(bytes).map(|plain| (plain.request, plain.len))
}

/// Limit on the bytes of one read. The request of a player is always shorter.
const READ_BYTES_MAX: usize = 16 << 10;

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into());
}

/// The reason for leaving the fast path.
pub(super) enum FastPathExit {
    /// The connection ended.
    Nothing,
    /// The next request needs `hyper`. The bytes of this request were put back into the connection.
    Request,
}

// The large variant is short-lived, and a box would cost one allocation per request.
#[allow(clippy::large_enum_variant)]
enum NextRequest {
    Plain(FastPathRequest),
    Other,
    /// The connection has ended, or a close was requested.
    Nothing,
}

impl NextRequest {
    /// Returns the number of bytes that the fast path consumes. This number is the length of the
    /// head for a plain request, and 0 otherwise.
    fn len(&self) -> usize {
        match self {
            NextRequest::Plain(plain) => plain.len,
            NextRequest::Other | NextRequest::Nothing => 0,
        }
    }
}

/// Received bytes that the fast path has not consumed yet.
type UnreadBytes = Bytes;

impl<H, R> ConnectionService<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    /// Serves requests until the connection ends or a request needs `hyper`.
    pub(super) async fn serve_fast_path(
        &self,
        io: &mut ConnectionIo,
        shared: &Arc<ConnectionState>,
    ) -> io::Result<FastPathExit> {
        let max = self.common.limits.header_bytes_max;
        let mut unread = UnreadBytes::new();
        let mut interim = InterimWriter::default();
        loop {
            let mut waited = false;
            let len = std::future::poll_fn(|cx| {
                let read = poll_request_bytes(io, shared, &unread, cx);
                waited |= read.is_pending();
                read
            })
            .await?;
            // Parses after the `poll_fn` future is complete. If this future returned the request,
            // the request would be moved several times.
            let (mut options, request) = match take_request(&mut unread, len, max) {
                NextRequest::Plain(plain) => (plain.response_options(), plain.request),
                NextRequest::Other => {
                    io.put_back(unread);
                    return Ok(FastPathExit::Request);
                }
                NextRequest::Nothing => break,
            };
            // Each connection gets one response per turn. Otherwise a client that always has its
            // next request ready would block other connections of the worker.
            if !waited {
                tokio::task::yield_now().await;
            }
            let response = {
                let mut handling = pin!(self.check_and_handle(request, shared));
                // HTTP/1.0 has no interim responses (RFC 9110 section 15.2).
                if options.version == Version::HTTP_11 {
                    shared.interim.accept_interims_for(shared.request_count());
                }
                let response = std::future::poll_fn(|cx| match handling.as_mut().poll(cx) {
                    Poll::Ready(response) => Poll::Ready(Ok(response)),
                    Poll::Pending => {
                        if let Err(error) = interim.write_queued_interims(io, shared, cx) {
                            return Poll::Ready(Err(error));
                        }
                        poll_disconnect(io, &mut unread, cx).map(Err)
                    }
                });
                response.await?.unwrap_or_else(|never| match never {})
            };
            let before = interim.take_unsent_interims(shared);
            options.last |= shared.is_closing();
            let mut writer = ResponseWriter::new(response, options, before);
            std::future::poll_fn(|cx| match writer.poll(io, cx) {
                Poll::Ready(left) => Poll::Ready(left),
                Poll::Pending => poll_disconnect(io, &mut unread, cx).map(Err),
            })
            .await?;
            if writer.last {
                break;
            }
        }
        std::future::poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await?;
        Ok(FastPathExit::Nothing)
    }
}

/// Waits for the bytes of a request, unless `unread` contains bytes. Returns the number of bytes
/// that were read into the thread's buffer. This number is 0 if `unread` contains bytes, if the
/// connection has ended, or if the connection must close.
fn poll_request_bytes(
    io: &mut ConnectionIo,
    shared: &ConnectionState,
    unread: &UnreadBytes,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if !unread.is_empty() {
        return Poll::Ready(Ok(0));
    }
    // Reads before the check for a close, so that a request that has already arrived is still
    // served.
    let read = poll_read(io, cx, <[u8]>::len);
    if read.is_pending() && shared.poll_closing(cx.waker()) {
        return Poll::Ready(Ok(0));
    }
    read
}

/// Takes the next request from the unread bytes. If there are none, takes the request from the
/// `len` bytes that [`poll_request_bytes`] has just read.
fn take_request(unread: &mut UnreadBytes, len: usize, max: usize) -> NextRequest {
    if !unread.is_empty() {
        let next = classify_request(unread, max);
        unread.advance(next.len());
        return next;
    }
    READ.with_borrow(|bytes| {
        let bytes = bytes.get(..len).unwrap_or_default();
        let next = classify_request(bytes, max);
        *unread = Bytes::copy_from_slice(bytes.get(next.len()..).unwrap_or_default());
        next
    })
}

/// Classifies the request at the start of `bytes`.
fn classify_request(bytes: &[u8], max: usize) -> NextRequest {
    if bytes.is_empty() {
        return NextRequest::Nothing;
    }
    match request::parse_request(bytes) {
        Some(plain) if plain.len <= max => NextRequest::Plain(plain),
        _ => NextRequest::Other,
    }
}

/// Completes if the client disconnects while its response is prepared or sent. Stores received
/// bytes in `unread`.
fn poll_disconnect(
    io: &mut ConnectionIo,
    unread: &mut UnreadBytes,
    cx: &mut Context<'_>,
) -> Poll<io::Error> {
    if !unread.is_empty() {
        return Poll::Pending;
    }
    let read = poll_read(io, cx, |bytes| *unread = Bytes::copy_from_slice(bytes));
    match ready!(read) {
        Ok(()) if !unread.is_empty() => Poll::Pending,
        Ok(()) => Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
        Err(error) => Poll::Ready(error),
    }
}

/// Reads bytes and passes them to `look`. At the end of the connection, `look` gets an empty slice.
fn poll_read<T>(
    io: &mut ConnectionIo,
    cx: &mut Context<'_>,
    look: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>> {
    READ.with_borrow_mut(|bytes| {
        let mut read = ReadBuf::new(bytes);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(look(read.filled())))
    })
}
