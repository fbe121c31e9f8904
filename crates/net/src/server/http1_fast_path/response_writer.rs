//! Sends a response.

use std::cell::Cell;
use std::io::{self, Write};
use std::task::{Context, Poll, ready};

use http::Response;

use super::response_head::{self, BodyFraming, ResponseOptions};
use crate::conn::{ConnectionIo, OutgoingParts};
use crate::headers::recycle_map;
use crate::{Body, Chunk};

/// Largest capacity of a buffer that is stored for reuse.
const SPARE_BYTES_MAX: usize = 4096;

thread_local! {
    static SPARE: Cell<Vec<u8>> = Cell::default();
}

/// A response in progress: the chunk that is being sent, its framing, and the rest of the body.
pub(super) struct ResponseWriter {
    /// The bytes before the chunk, which are the head, the chunk's size line, or both. The first
    /// `sent` bytes have been sent.
    before: Vec<u8>,
    sent: usize,
    chunk: Option<Chunk>,
    after: &'static [u8],
    body: Body,
    /// Framing of the rest of the body. `BodyFraming::Length` contains the number of bytes that
    /// `accept_chunk` has not received yet.
    framing: BodyFraming,
    /// The body has no further chunk.
    done: bool,
    /// The connection closes after this response.
    pub(super) last: bool,
}

impl ResponseWriter {
    /// Creates a writer for a response. `interim` contains the unsent bytes of interim responses to
    /// the same request.
    pub(super) fn new(
        response: Response<Body>,
        options: ResponseOptions,
        interim: Vec<u8>,
    ) -> ResponseWriter {
        let (parts, mut body) = response.into_parts();
        let framing = BodyFraming::choose_framing(options, parts.status, body.known_len());
        let (fields, mut before) = (body.take_fields(), SPARE.take());
        before.extend_from_slice(&interim);
        let last =
            response_head::write_head(&mut before, &parts, fields.as_ref(), framing, options);
        recycle_map(parts.headers);
        if matches!(framing, BodyFraming::Silent | BodyFraming::None) {
            body.empty_for_head_request();
        }
        ResponseWriter {
            before,
            sent: 0,
            chunk: None,
            after: b"",
            done: body.is_done(),
            body,
            framing,
            last,
        }
    }

    /// Completes when everything has been sent.
    pub(super) fn poll(&mut self, io: &ConnectionIo, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.done && self.chunk.is_none() {
                match self.body.poll_chunk(cx) {
                    Poll::Ready(Some(chunk)) => {
                        self.accept_chunk(Some(chunk.map_err(io::Error::other)?))?;
                    }
                    Poll::Ready(None) => self.accept_chunk(None)?,
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

    /// Accepts the body's next chunk, or `None` at the end of the body.
    ///
    /// # Errors
    /// When the body's length differs from the declared length. The error closes the connection.
    /// Otherwise the client would wait for missing bytes, or would treat later bytes as a part of
    /// the body.
    fn accept_chunk(&mut self, chunk: Option<Chunk>) -> io::Result<()> {
        self.done = chunk.is_none() || self.body.is_done();
        let len = chunk.as_ref().map_or(0, Chunk::len);
        match &mut self.framing {
            BodyFraming::Length(left) => {
                let rest = left.checked_sub(len);
                *left = rest
                    .filter(|rest| !self.done || *rest == 0)
                    .ok_or_else(|| {
                        io::Error::new(
                            io::ErrorKind::InvalidData,
                            "the body differs from its declared length",
                        )
                    })?;
            }
            BodyFraming::Chunked => self.frame_chunk(len),
            BodyFraming::Silent | BodyFraming::None | BodyFraming::UntilClose => {}
        }
        self.chunk = chunk.filter(|chunk| !chunk.is_empty());
        Ok(())
    }

    /// Writes the framing around a chunk of `len` bytes (RFC 9112 section 7.1).
    fn frame_chunk(&mut self, len: u64) {
        if len > 0 {
            // Ignores the result because writing to memory cannot fail.
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

    fn poll_write(&self, io: &ConnectionIo, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let outgoing = OutgoingParts {
            before: self.before.get(self.sent..).unwrap_or_default(),
            chunk: self.chunk.as_ref(),
            after: self.after,
        };
        io.poll_send_parts(cx, outgoing)
    }

    /// Removes `count` bytes that have been sent.
    fn advance(&mut self, mut count: usize) {
        let head = count.min(self.before.len() - self.sent);
        self.sent += head;
        count -= head;
        if self.sent == self.before.len() {
            self.sent = 0;
            recycle_buffer(std::mem::take(&mut self.before));
        }
        if let Some(chunk) = &mut self.chunk {
            let part = (count as u64).min(chunk.len());
            chunk.advance(part);
            count -= part as usize;
            self.chunk.take_if(|chunk| chunk.is_empty());
        }
        self.after = self.after.get(count..).unwrap_or_default();
    }
}

/// Stores a used buffer, so that the next head needs no allocation.
fn recycle_buffer(mut buffer: Vec<u8>) {
    if (1..=SPARE_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        SPARE.set(buffer);
    }
}
