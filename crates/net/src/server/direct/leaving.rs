//! An answer on its way out.

use std::cell::Cell;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::Response;
use http_body::Body as _;
use tokio::io::AsyncWrite;

use super::head::{self, Framing};
use crate::conn::Io;
use crate::headers::done_with;
use crate::{Body, Chunk};

/// Buffers a write, as many as `hyper` gives at a time.
const SLICES_MAX: usize = 64;
/// What is kept of a head's buffer for the next one.
const SPARE_BYTES_MAX: usize = 4096;

thread_local! {
    static SPARE: Cell<Vec<u8>> = Cell::default();
}

/// The part that is to leave now, between what frames it, and the body that the next ones are of.
pub(super) struct Leaving {
    /// The head, or a chunk's size, of which `sent` bytes have left.
    before: Vec<u8>,
    sent: usize,
    chunk: Option<Chunk>,
    after: &'static [u8],
    body: Body,
    /// How the rest of the body is framed: a length is of what `take` has not seen yet.
    framing: Framing,
    /// The body has no more.
    done: bool,
    /// The connection ends with it.
    pub(super) last: bool,
}

impl Leaving {
    /// An answer, to HEAD if `head`.
    pub(super) fn new(response: Response<Body>, head: bool, last: bool) -> Leaving {
        let (parts, mut body) = response.into_parts();
        let framing = Framing::of(head, parts.status, body.size_hint().exact());
        let (fields, mut before) = (body.take_fields(), SPARE.take());
        let last = head::write(&mut before, &parts, fields.as_ref(), framing, last);
        done_with(parts.headers);
        let sent = matches!(framing, Framing::Length(_) | Framing::Chunked);
        let body = if sent { body } else { body.silenced() };
        Leaving {
            before,
            sent: 0,
            chunk: None,
            after: b"",
            done: body.is_end_stream(),
            body,
            framing,
            last,
        }
    }

    /// Until all has left.
    pub(super) fn poll(&mut self, io: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.done && self.chunk.is_none() {
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(Some(frame)) => {
                        self.take(frame.map_err(io::Error::other)?.into_data().ok())?;
                    }
                    Poll::Ready(None) => self.take(None)?,
                    Poll::Pending if self.is_sent() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            while !self.is_sent() {
                let count = ready!(self.poll_write(io, cx))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.advance(count);
            }
            if self.done {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// The body's next part, or its end.
    ///
    /// # Errors
    /// If the body is not as long as was said: the client must not take what follows for a part of
    /// it, nor wait for the rest.
    fn take(&mut self, chunk: Option<Chunk>) -> io::Result<()> {
        self.done = chunk.is_none() || self.body.is_end_stream();
        let len = chunk.as_ref().map_or(0, Chunk::len);
        match &mut self.framing {
            Framing::Length(left) => {
                let rest = left.checked_sub(len);
                *left = rest
                    .filter(|rest| !self.done || *rest == 0)
                    .ok_or_else(|| {
                        io::Error::new(
                            io::ErrorKind::InvalidData,
                            "a body of another length than said",
                        )
                    })?;
            }
            Framing::Chunked => self.frame_chunk(len),
            Framing::Silent | Framing::None => {}
        }
        self.chunk = chunk.filter(|chunk| !chunk.is_empty());
        Ok(())
    }

    /// What goes before and after a chunk of so many bytes (RFC 9112 section 7.1).
    fn frame_chunk(&mut self, len: u64) {
        if len > 0 {
            // Memory takes everything.
            let _ = write!(self.before, "{len:X}\r\n");
        }
        self.after = match (len, self.done) {
            (0, false) => b"",
            (_, false) => b"\r\n",
            (0, true) => b"0\r\n\r\n",
            (_, true) => b"\r\n0\r\n\r\n",
        };
    }

    fn is_sent(&self) -> bool {
        self.before.is_empty() && self.chunk.is_none() && self.after.is_empty()
    }

    fn poll_write(&self, io: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(b""); SLICES_MAX];
        let mut count = 0;
        let before = self.before.get(self.sent..).unwrap_or_default();
        if let (Some(slot), false) = (slices.first_mut(), before.is_empty()) {
            *slot = IoSlice::new(before);
            count = 1;
        }
        if let (Some(chunk), Some(rest)) = (&self.chunk, slices.get_mut(count..)) {
            count += chunk.chunks_vectored(rest);
        }
        // Where all of the chunk has found a place.
        if let (Some(slot), false) = (slices.get_mut(count), self.after.is_empty()) {
            *slot = IoSlice::new(self.after);
            count += 1;
        }
        let slices = slices.get(..count).unwrap_or_default();
        Pin::new(io).poll_write_vectored(cx, slices)
    }

    /// So many bytes have left.
    fn advance(&mut self, mut count: usize) {
        let head = count.min(self.before.len() - self.sent);
        self.sent += head;
        count -= head;
        if self.sent == self.before.len() {
            self.sent = 0;
            spare(std::mem::take(&mut self.before));
        }
        if let Some(chunk) = &mut self.chunk {
            let part = count.min(chunk.remaining());
            chunk.advance(part);
            count -= part;
            self.chunk.take_if(|chunk| !chunk.has_remaining());
        }
        self.after = self.after.get(count..).unwrap_or_default();
    }
}

/// Gives a buffer that is done with, so that the next head needs none of its own.
fn spare(mut buffer: Vec<u8>) {
    if (1..=SPARE_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        SPARE.set(buffer);
    }
}
