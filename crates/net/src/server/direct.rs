//! The requests of players, answered without a detour.
//!
//! GET and HEAD of HTTP/1.1 without a body, whose head comes whole and says nothing odd of the
//! connection: all else, at its first byte and with all that follows on its connection, is left to
//! `hyper`. What is strict there (the parser is the same) is strict here; what would be a choice
//! (lengths, encodings of a body, upgrades) never comes here. A connection that waits, or whose
//! client reads slowly, keeps no buffer.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Method, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::leaving::Leaving;
use super::serve::Service;
use crate::body::Incoming;
use crate::conn::{Io, Shared};
use crate::{Body, Conn};

mod head;
mod leaving;
mod request;

#[cfg(any(test, fuzzing))]
pub(crate) use self::request::parse as plain_request;

/// The most read at a time: more than any player's request has.
const READ_BYTES_MAX: usize = 16 << 10;

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into());
}

/// What a connection came to.
pub(super) enum Left {
    /// Its end.
    Nothing,
    /// A request that is not for here, put back unread.
    Request,
}

// It lives for a moment, and a box would be one more for each request.
#[allow(clippy::large_enum_variant)]
enum Came {
    Plain(Request<Incoming>),
    Other,
    /// The end, or we were asked to close.
    Nothing,
}

/// What was read and is not answered yet.
type Ahead = Bytes;

impl<H, R> Service<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    /// Answers until the connection ends, or brings what is not for here.
    pub(super) async fn direct(&self, io: &mut Io, shared: &Arc<Shared>) -> io::Result<Left> {
        let max = self.common.limits.header_bytes_max;
        let mut ahead = Ahead::new();
        loop {
            let came = std::future::poll_fn(|cx| poll_request(io, shared, &mut ahead, max, cx));
            let (head, request) = match came.await? {
                Came::Plain(request) => (*request.method() == Method::HEAD, request),
                Came::Other => {
                    io.unread(ahead);
                    return Ok(Left::Request);
                }
                Came::Nothing => break,
            };
            let response = {
                let mut answer = pin!(self.answer(request, shared));
                let response = std::future::poll_fn(|cx| match answer.as_mut().poll(cx) {
                    Poll::Ready(response) => Poll::Ready(Ok(response)),
                    Poll::Pending => poll_gone(io, &mut ahead, cx).map(Err),
                });
                response.await?.unwrap_or_else(|never| match never {})
            };
            let mut leaving = Leaving::new(response, head, shared.is_closing());
            std::future::poll_fn(|cx| match leaving.poll(io, cx) {
                Poll::Ready(left) => Poll::Ready(left),
                Poll::Pending => poll_gone(io, &mut ahead, cx).map(Err),
            })
            .await?;
            if leaving.last {
                break;
            }
            // Who sends many requests at once does not keep the others waiting.
            tokio::task::consume_budget().await;
        }
        std::future::poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await?;
        Ok(Left::Nothing)
    }
}

/// The next request, once it is there.
fn poll_request(
    io: &mut Io,
    shared: &Shared,
    ahead: &mut Ahead,
    max: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Came>> {
    if !ahead.is_empty() {
        let (came, used) = came(ahead, max);
        ahead.advance(used);
        return Poll::Ready(Ok(came));
    }
    if shared.poll_closing(cx.waker()) {
        return Poll::Ready(Ok(Came::Nothing));
    }
    poll_read(io, cx, |bytes| {
        let (came, used) = came(bytes, max);
        *ahead = Bytes::copy_from_slice(bytes.get(used..).unwrap_or_default());
        came
    })
}

/// What these bytes begin with, and how many of them are used up by it.
fn came(bytes: &[u8], max: usize) -> (Came, usize) {
    if bytes.is_empty() {
        return (Came::Nothing, 0);
    }
    match request::parse(bytes) {
        Some((request, len)) if len <= max => (Came::Plain(request), len),
        _ => (Came::Other, 0),
    }
}

/// While an answer is made or leaves: whether there is nobody any more who waits for it.
fn poll_gone(io: &mut Io, ahead: &mut Ahead, cx: &mut Context<'_>) -> Poll<io::Error> {
    if !ahead.is_empty() {
        return Poll::Pending;
    }
    let read = poll_read(io, cx, |bytes| *ahead = Bytes::copy_from_slice(bytes));
    match ready!(read) {
        Ok(()) if !ahead.is_empty() => Poll::Pending,
        Ok(()) => Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
        Err(error) => Poll::Ready(error),
    }
}

/// Shows what was read to `look`; at the end of the connection, nothing.
fn poll_read<T>(
    io: &mut Io,
    cx: &mut Context<'_>,
    look: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>> {
    READ.with_borrow_mut(|bytes| {
        let mut read = ReadBuf::new(bytes);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(look(read.filled())))
    })
}
