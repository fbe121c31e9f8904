//! HTTP/1.1 on one connection: a request, and its answer read straight into buffers that are used
//! again.

use super::Failed;
use super::buffers::{Buffer, Buffers};
use super::framing::Framing;
use super::head;
use super::socket::Counted;
use crate::pipes::{Filled, Pipe};
use bytes::{Buf, BufMut, Bytes};
use http::StatusCode;
use http::response::Parts;
use object_store::client::HttpRequest;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::either::Either;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// What a head is likely to need.
const HEAD_BYTES: usize = 2 << 10;
/// Answers before the one that counts (1xx).
const INTERIM_MAX: usize = 8;
/// Room in a buffer that is too short to read into, where more is to come.
const ROOM_BYTES_MIN: usize = 32 << 10;

/// Fewer bytes of a body are rather copied than moved into a pipe.
const PIPED_BYTES_MIN: u64 = 4 << 10;

/// What came of an answer's body.
#[derive(Debug)]
pub(crate) enum Came {
    /// Bytes in memory.
    Bytes(Bytes),
    /// So many bytes, which are in the pipe that was given for them.
    Piped(usize),
}

impl Came {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Came::Bytes(bytes) => bytes.len() as u64,
            Came::Piped(count) => *count as u64,
        }
    }
}

/// A connection that is asked one thing at a time.
pub(super) struct Wire {
    counted: Counted,
    buffers: Arc<Buffers>,
    /// What was read and not yet taken, and room for what comes.
    buffer: Buffer,
    coming: Framing,
    keep: bool,
}

impl Wire {
    pub(super) fn new(counted: Counted, buffers: Arc<Buffers>) -> Wire {
        Wire {
            counted,
            buffers,
            buffer: Buffer::default(),
            coming: Framing::Length(0),
            keep: true,
        }
    }

    /// Sends a request, and waits for the head of its answer. `expected`: bytes that its body is
    /// likely to have.
    pub(super) async fn ask(
        &mut self,
        request: &HttpRequest,
        expected: usize,
    ) -> Result<Parts, Failed> {
        self.keep = false;
        let mut bytes = head::request(request);
        // No request of ours has a body of parts.
        bytes.extend_from_slice(request.body().as_bytes().map_or(&[], |body| body));
        self.counted.stream.write_all(&bytes).await.map_err(cut)?;
        self.counted.stream.flush().await.map_err(cut)?;
        self.renew(expected.saturating_add(HEAD_BYTES));
        for _ in 0..=INTERIM_MAX {
            let head = self.head(request).await?;
            self.buffer.advance(head.len);
            if head.parts.status == StatusCode::SWITCHING_PROTOCOLS {
                break;
            }
            if !head.parts.status.is_informational() {
                self.coming = head.framing;
                self.keep = head.keep;
                return Ok(head.parts);
            }
        }
        Err(Failed::Cut("it speaks of something else".into()))
    }

    async fn head(&mut self, request: &HttpRequest) -> Result<head::Head, Failed> {
        loop {
            let found = head::answer(&self.buffer, request.method());
            if let Some(head) = found.map_err(|why| Failed::Cut(why.into()))? {
                return Ok(head);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(Failed::Cut("a head that is too long".into()));
            }
            let read = std::future::poll_fn(|cx| self.poll_read(cx, HEAD_BYTES, usize::MAX)).await;
            if read.map_err(cut)? == 0 {
                return Err(Failed::Cut("the connection was closed".into()));
            }
        }
    }

    /// The next bytes of the answer's body; none at its end.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failed>>> {
        loop {
            match self.coming.take(&mut self.buffer) {
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(None) if self.coming.is_over() => return Poll::Ready(None),
                Ok(None) => {}
                Err(why) => return Poll::Ready(Some(Err(Failed::Cut(why.into())))),
            }
            // Of framing a little at a time; of a body all that is to come, and nothing beyond.
            let wanted = match usize::try_from(self.coming.ahead()).unwrap_or(usize::MAX) {
                0 => HEAD_BYTES,
                ahead => ahead,
            };
            match (ready!(self.poll_read(cx, wanted, wanted)), self.coming) {
                (Ok(0), Framing::Close) => self.coming = Framing::Closed,
                (Ok(0), _) => return Poll::Ready(Some(Err(short()))),
                (Ok(_), _) => {}
                (Err(error), _) => return Poll::Ready(Some(Err(cut(error)))),
            }
        }
    }

    /// Ready when there is something of the answer's body, or it is over.
    pub(super) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        match &self.counted.stream {
            Either::Left(socket) if self.buffer.is_empty() && !self.is_over() => {
                match ready!(socket.poll_peek(cx)).map_err(cut)? {
                    0 if self.coming != Framing::Close => Poll::Ready(Err(short())),
                    _ => Poll::Ready(Ok(())),
                }
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// What comes next of the answer's body, moved into `pipe` as far as that goes; none at its end.
    pub(super) fn poll_piped(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<Came, Failed>>> {
        let ahead = self.coming.ahead();
        if let Either::Left(socket) = &self.counted.stream
            && self.buffer.is_empty()
            && ahead >= PIPED_BYTES_MIN
        {
            let most = usize::try_from(ahead).unwrap_or(usize::MAX);
            match ready!(socket.poll_pipe(cx, pipe, most)) {
                // What the end means is said by whoever reads.
                Ok(Filled::Full | Filled::Bytes(0)) => {}
                Ok(Filled::Bytes(count)) => {
                    self.coming.pass(count as u64);
                    return Poll::Ready(Some(Ok(Came::Piped(count))));
                }
                Err(error) => return Poll::Ready(Some(Err(cut(error)))),
            }
        }
        self.poll_data(cx).map_ok(Came::Bytes)
    }

    /// Reads once, up to `most` bytes; `wanted`: as far as is known, so many are to come.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < wanted.min(ROOM_BYTES_MIN) {
            // What is longer comes in several buffers.
            self.renew(wanted.min(1 << 20) + self.buffer.len());
        }
        let room = self.buffer.capacity() - self.buffer.len();
        let mut into = (&mut *self.buffer).limit(room.min(most));
        pin!(self.counted.stream.read_buf(&mut into)).poll(cx)
    }

    /// Goes on in another buffer.
    fn renew(&mut self, wanted: usize) {
        let mut next = self.buffers.take(wanted);
        next.extend_from_slice(&self.buffer);
        let last = std::mem::replace(&mut self.buffer, next);
        self.buffers.give(last);
    }

    /// Whether there is no TLS.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.counted.stream, Either::Left(_))
    }

    /// Whether the answer has been read to its end.
    pub(super) fn is_over(&self) -> bool {
        self.coming.is_over()
    }

    /// Bytes of the body that are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        match self.coming {
            Framing::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Rests until the next request, if there may be one.
    pub(super) fn rest(mut self) -> Option<Wire> {
        let sound = self.keep && self.is_over() && self.buffer.is_empty();
        self.buffers.give(std::mem::take(&mut self.buffer));
        (sound && self.counted.leave().is_ok()).then_some(self)
    }

    /// Whether a resting one can be woken.
    pub(super) fn is_open(&mut self) -> bool {
        self.counted.is_open()
    }

    /// Back to work, on the runtime that this is called on.
    pub(super) fn wake(mut self) -> Option<Wire> {
        (self.is_open() && self.counted.enter().is_ok()).then_some(self)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.buffer));
    }
}

fn short() -> Failed {
    Failed::Cut("end of file before message length reached".into())
}

fn cut(error: io::Error) -> Failed {
    Failed::Cut(error.to_string())
}
