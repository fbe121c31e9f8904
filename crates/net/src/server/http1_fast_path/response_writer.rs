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
            body.discard_bytes_for_head();
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
            // The framing after a chunk may still be unsent when the chunk is sent. The next chunk
            // would replace this framing.
            if !self.done && self.chunk.is_none() && self.after.is_empty() {
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::task::Waker;

    use bytes::Bytes;
    use http::Version;

    use super::*;
    use crate::body::BodyError;
    use crate::conn::{CoarseClock, ConnectionState};

    const FRAMED: &[u8] = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

    /// A stream whose chunks are available at once.
    struct ReadyChunks(std::vec::IntoIter<&'static str>);

    impl futures_core::Stream for ReadyChunks {
        type Item = Result<Bytes, BodyError>;

        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.next().map(|text| Ok(Bytes::from(text))))
        }
    }

    fn chunked_writer() -> ResponseWriter {
        let body = Body::unsized_stream(ReadyChunks(vec!["abc", "de"].into_iter()));
        let options = ResponseOptions {
            head: false,
            last: false,
            version: Version::HTTP_11,
        };
        ResponseWriter::new(Response::new(body), options, Vec::new())
    }

    /// Returns a connection whose socket is full, its client, and the number of bytes that fill the
    /// socket.
    async fn full_connection() -> (ConnectionIo, TcpStream, usize) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = tokio::net::TcpStream::from_std(socket).unwrap();
        socket.writable().await.unwrap();
        let (read, write) = socket.into_split();
        let clock = Arc::new(CoarseClock::new());
        let shared = Arc::new(ConnectionState::new(1, peer, false, write, clock));
        let io = ConnectionIo::new(read, shared);
        let zeros = vec![0; 1 << 20];
        let filler = OutgoingParts {
            before: &zeros,
            chunk: None,
            after: b"",
        };
        let mut cx = Context::from_waker(Waker::noop());
        let mut filled = 0;
        while let Poll::Ready(count) = io.poll_send_parts(&mut cx, filler) {
            filled += count.unwrap();
        }
        (io, client, filled)
    }

    /// Regression: the next chunk replaced the rest of the framing after a chunk, so that clients
    /// could not find the end of the chunk.
    #[tokio::test]
    async fn a_write_that_ends_within_the_framing_continues_there() {
        let head_len = chunked_writer().before.len();
        for cut in head_len..=head_len + b"3\r\nabc\r\n".len() {
            let (io, mut client, filled) = full_connection().await;
            let mut writer = chunked_writer();
            let mut cx = Context::from_waker(Waker::noop());
            assert!(writer.poll(&io, &mut cx).is_pending());
            let first = [&writer.before[..], b"abc", writer.after].concat();
            // Simulates a socket that accepted this many bytes.
            writer.advance(cut);
            let reading = std::thread::spawn(move || {
                let mut all = Vec::new();
                client.read_to_end(&mut all).unwrap();
                all.split_off(filled)
            });
            std::future::poll_fn(|cx| writer.poll(&io, cx))
                .await
                .unwrap();
            drop((writer, io));
            let sent = [&first[..cut], &reading.join().unwrap()].concat();
            let body = sent.get(head_len..).unwrap();
            assert!(body == FRAMED, "{cut}: {}", body.escape_ascii());
        }
    }
}
