//! HTTP/1.1 on one connection. Sends a request, and reads the response directly into buffers of
//! suitable length.

use crate::outgoing::{ExchangeRequest, Outgoing};
use crate::read_buffers::{ReadBuffer, ReadBuffers};
use crate::{
    ClientStream, ConnectionGuard, DetachableSocket, ExchangeError, OpenedStream, RequestUpload,
};
use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, Method, header};
use http1::{BodyDecoder, HeadLimits, ProtocolError, ResponseHead};
use rustls::ClientConnection;
use std::future::poll_fn;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncReadExt;
use tokio_util::either::Either;

/// Buffer space that is reserved for a response head, in bytes.
const HEAD_BYTES: usize = 2 << 10;
/// Maximum number of interim responses (1xx) before the final response.
const INTERIM_RESPONSES_MAX: usize = 8;
/// A recycled buffer with less free space than this is replaced before a read, unless all wanted
/// bytes fit.
const READ_ROOM_BYTES_MIN: usize = 32 << 10;
/// If fewer bytes than this remain in the current chunk or body, the bytes are read into memory
/// instead of spliced.
const SPLICE_BYTES_MIN: u64 = 4 << 10;
/// Maximum number of reads in which an idle TLS session is searched for data. Session tickets need
/// one or two.
const IDLE_READS_MAX: usize = 8;
/// Length of the first buffer that contains only bytes of one body. Each later buffer is as long as
/// the bytes received so far, up to `EXCLUSIVE_BYTES_MAX`. A server therefore cannot cause a large
/// allocation merely by declaring a large Content-Length.
const EXCLUSIVE_BYTES_MIN: u64 = 256 << 10;
const EXCLUSIVE_BYTES_MAX: u64 = 1 << 20;

/// A connection that carries one exchange at a time. The connection is closed when it is dropped.
#[derive(Debug)]
pub struct Connection {
    stream: ClientStream,
    guard: ConnectionGuard,
    buffers: Arc<ReadBuffers>,
    /// Received bytes that have not been taken yet, and space for more bytes.
    buffer: ReadBuffer,
    body: BodyDecoder,
    /// Whether another request may follow once the exchange is complete.
    keep_alive: bool,
    outgoing: Outgoing,
    /// Whether body bytes are read into buffers that contain only bytes of this body.
    reads_exclusively: bool,
    received: u64,
}

/// Body bytes in memory, or in the caller's pipe.
#[derive(Debug)]
pub enum BodyData {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Number of bytes that were spliced into the caller's pipe.
    Spliced(usize),
}

impl BodyData {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            BodyData::Bytes(bytes) => bytes.len() as u64,
            BodyData::Spliced(count) => *count as u64,
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Connection {
    /// Creates a connection that reads into recycled memory of `buffers`.
    pub fn new(opened: OpenedStream, buffers: Arc<ReadBuffers>) -> Connection {
        Connection {
            stream: opened.stream,
            guard: opened.guard,
            buffers,
            buffer: ReadBuffer::default(),
            body: BodyDecoder::Length(0),
            keep_alive: true,
            outgoing: Outgoing::default(),
            reads_exclusively: false,
            received: 0,
        }
    }

    /// Returns the connection's number, counted from 1 in the order of opening.
    pub fn id(&self) -> u64 {
        self.guard.connection_number()
    }

    /// Sends a request and waits for the head of the response. The upload continues while the
    /// response is read.
    ///
    /// # Errors
    /// When no valid response head arrives. [`Connection::has_sent_bytes`] then returns whether the
    /// request may have reached the server.
    pub async fn exchange(
        &mut self,
        request: ExchangeRequest<'_>,
        upload: Option<RequestUpload>,
    ) -> Result<(ResponseHead, HeaderMap), ExchangeError> {
        self.keep_alive = false;
        self.reads_exclusively = false;
        self.received = 0;
        self.outgoing = Outgoing::new(&request, upload);
        poll_fn(|cx| self.poll_start_sending(cx)).await?;
        self.enlarge_read_buffer(request.expected_bytes.saturating_add(HEAD_BYTES));
        let to_head = *request.method == Method::HEAD;
        for _ in 0..=INTERIM_RESPONSES_MAX {
            let limits = request.limits;
            let (head, mut headers) = poll_fn(|cx| self.poll_head(cx, limits, to_head)).await?;
            self.buffer.advance(head.len);
            if head.status == 101 {
                break;
            }
            if !head.is_interim() {
                self.body = head.body;
                self.keep_alive = head.keep_alive;
                if matches!(head.body, BodyDecoder::Chunked(_)) {
                    // Chunked framing overrides Content-Length (RFC 9112 section 6.3).
                    headers.remove(header::CONTENT_LENGTH);
                }
                return Ok((head, headers));
            }
            if let Some(handler) = request.on_interim {
                handler.handle_interim_response(head.status, &headers);
            }
        }
        Err(ExchangeError::UnexpectedInterim)
    }

    /// Returns whether any byte of the last request was written.
    pub fn has_sent_bytes(&self) -> bool {
        self.outgoing.has_started
    }

    /// Returns whether the connection waits for more data of the request's upload.
    pub(crate) fn awaits_upload_data(&self) -> bool {
        self.outgoing.awaits_upload_data
    }

    /// Returns the upload of a request of which no byte was sent.
    pub(crate) fn take_upload(&mut self) -> Option<RequestUpload> {
        self.outgoing.upload.take()
    }

    /// Writes until the socket's send buffer is full or the upload has no data ready. Once a byte
    /// of the request has been written, socket errors are ignored, because the server may have
    /// responded before it closed the connection.
    fn poll_start_sending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        match self.poll_send(cx) {
            Poll::Ready(Err(error))
                if !self.outgoing.has_started || matches!(error, ExchangeError::Upload(_)) =>
            {
                Poll::Ready(Err(error))
            }
            Poll::Pending if !self.outgoing.has_started => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: HeadLimits,
        to_head: bool,
    ) -> Poll<Result<(ResponseHead, HeaderMap), ExchangeError>> {
        let sending = self.poll_send(cx);
        loop {
            if let Some(found) = ResponseHead::parse_to_map(&self.buffer, limits, to_head)? {
                return Poll::Ready(Ok(found));
            }
            match self.poll_read(cx, HEAD_BYTES, usize::MAX) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ExchangeError::Closed)),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    // After a failed upload, the request stays incomplete and will never get a
                    // response.
                    return match sending {
                        Poll::Ready(Err(error @ ExchangeError::Upload(_))) => {
                            Poll::Ready(Err(error))
                        }
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }

    /// Writes the rest of the request. After an error, later calls write nothing, and the
    /// connection is not reused.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        let sent = ready!(self.outgoing.poll(&mut self.stream, cx));
        if sent.is_err() && self.outgoing.has_started {
            self.outgoing.discard_rest();
        }
        Poll::Ready(sent)
    }

    /// Reads the body into buffers that contain only bytes of this body, so that the body can be
    /// cached without a copy. Must be called before the first body byte is taken.
    pub fn use_exclusive_buffer(&mut self) {
        self.reads_exclusively = true;
        self.install_exclusive_buffer();
    }

    /// Replaces the read buffer by a new exclusive buffer, to which it copies the unread bytes.
    fn install_exclusive_buffer(&mut self) {
        let room = self
            .received
            .clamp(EXCLUSIVE_BYTES_MIN, EXCLUSIVE_BYTES_MAX);
        let room = room.min(self.body.bytes_until_framing()) as usize;
        let next = ReadBuffer::new_unrecycled(room.max(self.buffer.len()));
        self.move_to_buffer(next);
    }

    /// Returns the next bytes of the body; `None` at the end of the body.
    ///
    /// # Errors
    /// When the body is malformed or truncated.
    pub fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ExchangeError>>> {
        // Ignores a failed upload, because the server may still send the rest of the response.
        let _ = self.poll_send(cx);
        loop {
            let data = match self.body.next_data(&self.buffer) {
                Ok(data) => data,
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            };
            self.buffer.advance(data.start);
            if !data.is_empty() {
                self.received += data.len() as u64;
                return Poll::Ready(Some(Ok(self.buffer.split_to(data.len()).freeze())));
            }
            if self.body.is_complete() {
                return Poll::Ready(None);
            }
            // If chunk framing is next, reads at most `HEAD_BYTES`. Otherwise, reads at most the
            // rest of the current chunk or body.
            let wanted =
                match usize::try_from(self.body.bytes_until_framing()).unwrap_or(usize::MAX) {
                    0 => HEAD_BYTES,
                    ahead => ahead,
                };
            match ready!(self.poll_read(cx, wanted, wanted)) {
                Ok(0) => {
                    if let Err(error) = self.end_body_at_close() {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }

    fn end_body_at_close(&mut self) -> Result<(), ExchangeError> {
        self.body.decode_eof().map_err(|error| match self.body {
            BodyDecoder::Length(missing) => ExchangeError::Truncated { missing },
            _ => ExchangeError::Protocol(error),
        })
    }

    /// Completes when a part of the body or the end of the body can be read. Over TLS, completes
    /// immediately.
    ///
    /// # Errors
    /// When the body is truncated.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        let Either::Left(socket) = &self.stream else {
            return Poll::Ready(Ok(()));
        };
        if !self.buffer.is_empty() || self.is_complete() {
            return Poll::Ready(Ok(()));
        }
        match ready!(socket.poll_peek(cx))? {
            0 if self.body != BodyDecoder::UntilClose => {
                Poll::Ready(Err(ProtocolError::Truncated.into()))
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Moves the next bytes of the body with `splice`. Encrypted bytes, bytes that were already
    /// received, and short remainders of a chunk or body are returned in memory instead. Returns
    /// `None` at the end of the body. `splice` receives the socket and the maximum number of bytes,
    /// and returns the number of moved bytes. If `splice` returns 0, the bytes are read into
    /// memory.
    ///
    /// # Errors
    /// When the body is malformed or truncated.
    pub fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        mut splice: impl FnMut(BorrowedFd<'_>, usize) -> io::Result<usize>,
    ) -> Poll<Option<Result<BodyData, ExchangeError>>> {
        let ahead = self.body.bytes_until_framing();
        if let Either::Left(socket) = &self.stream
            && self.buffer.is_empty()
            && ahead >= SPLICE_BYTES_MIN
        {
            let limit = usize::try_from(ahead).unwrap_or(usize::MAX);
            match ready!(socket.poll_splice(cx, |socket| splice(socket, limit))) {
                Ok(0) => {}
                Ok(count) => {
                    self.body.consume_data(count as u64);
                    self.received += count as u64;
                    return Poll::Ready(Some(Ok(BodyData::Spliced(count))));
                }
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
        self.poll_data(cx).map_ok(BodyData::Bytes)
    }

    /// Performs one read of at most `limit` bytes. The length of the buffer is derived from
    /// `wanted`, the number of expected bytes.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let room = self.buffer.capacity() - self.buffer.len();
        if self.reads_exclusively && room == 0 {
            self.install_exclusive_buffer();
        } else if !self.reads_exclusively && room < wanted.min(READ_ROOM_BYTES_MIN) {
            let bytes = wanted.min(EXCLUSIVE_BYTES_MAX as usize) + self.buffer.len();
            self.enlarge_read_buffer(bytes);
        }
        let room = self.buffer.capacity() - self.buffer.len();
        let mut into = (&mut *self.buffer).limit(room.min(limit));
        pin!(self.stream.read_buf(&mut into)).poll(cx)
    }

    fn enlarge_read_buffer(&mut self, bytes: usize) {
        let mut next = self.buffers.take_buffer(bytes);
        // A recycled buffer may be shorter than requested. If the received bytes filled this
        // buffer, the next read would return 0 bytes, as if the connection were closed.
        if next.capacity() <= self.buffer.len() {
            self.buffers.recycle(next);
            next = ReadBuffer::new_unrecycled(bytes.max(2 * self.buffer.len()));
        }
        self.move_to_buffer(next);
    }

    fn move_to_buffer(&mut self, mut next: ReadBuffer) {
        next.extend_from_slice(&self.buffer);
        let last = std::mem::replace(&mut self.buffer, next);
        self.buffers.recycle(last);
    }

    /// Returns whether the connection does not use TLS.
    pub fn is_unencrypted(&self) -> bool {
        matches!(self.stream, Either::Left(_))
    }

    /// Returns whether the response has been read to its end.
    pub fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    /// Returns the number of remaining body bytes, if the response declared the body's length or
    /// the body is complete.
    pub fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// Prepares the connection for the idle list. Returns `None` if the connection cannot carry
    /// another request.
    pub(crate) fn into_idle(mut self, detaches: bool) -> Option<Connection> {
        let is_reusable = self.keep_alive
            && self.is_complete()
            && self.buffer.is_empty()
            && self.outgoing.is_complete();
        self.buffers.recycle(std::mem::take(&mut self.buffer));
        self.outgoing = Outgoing::default();
        let is_ready = is_reusable && (!detaches || self.socket_mut().detach().is_ok());
        is_ready.then_some(self)
    }

    /// Returns whether an idle connection can be used. It cannot if the server has closed it or has
    /// sent data. Such data would be mistaken for the response to the next request (RFC 9112
    /// section 6.3).
    pub(crate) fn is_open(&mut self) -> bool {
        match &mut self.stream {
            Either::Left(socket) => socket.is_open_and_silent(),
            Either::Right(tls) => {
                let (socket, session) = tls.get_mut();
                is_session_open(session, socket).unwrap_or(false)
            }
        }
    }

    /// Makes an idle connection usable on the current runtime. Returns `None` if the connection was
    /// closed.
    pub(crate) fn into_active(mut self) -> Option<Connection> {
        (self.is_open() && self.socket_mut().attach().is_ok()).then_some(self)
    }

    fn socket_mut(&mut self) -> &mut DetachableSocket {
        match &mut self.stream {
            Either::Left(socket) => socket,
            Either::Right(tls) => tls.get_mut().0,
        }
    }
}

/// Returns whether an idle TLS session has neither data nor an end. Reads what has arrived, because
/// only the decrypted bytes show whether they are session tickets, which are allowed.
fn is_session_open(session: &mut ClientConnection, socket: &mut impl io::Read) -> io::Result<bool> {
    for _ in 0..IDLE_READS_MAX {
        let state = session.process_new_packets().map_err(io::Error::other)?;
        if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
            return Ok(false);
        }
        match session.read_tls(socket) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.buffers.recycle(std::mem::take(&mut self.buffer));
    }
}
