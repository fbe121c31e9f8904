//! The socket of an HTTP connection, with vectored writes, progress reports and a lingering close.

use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use std::os::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::ConnectionState;
use super::send_parts::{OutgoingParts, send_slices};
use super::splice::SendOutcome;

/// Limit on the bytes discarded from a client that continues to send after our close.
const DISCARD_MAX: usize = 1 << 20;

/// The socket of one connection. Only the read half is stored here. The write half is in
/// [`ConnectionState`], because handlers set the socket's options there.
#[derive(Debug)]
pub(crate) struct ConnectionIo {
    read: OwnedReadHalf,
    shared: Arc<ConnectionState>,
    /// Bytes that were put back, so that they are read again.
    ahead: Bytes,
    /// Number of bytes discarded since we closed our side, or `None` before the close.
    discarded: Option<usize>,
}

impl ConnectionIo {
    pub(crate) fn new(read: OwnedReadHalf, shared: Arc<ConnectionState>) -> ConnectionIo {
        ConnectionIo {
            read,
            shared,
            ahead: Bytes::new(),
            discarded: None,
        }
    }

    /// Puts back the bytes that were read last, so that they are read again.
    pub(crate) fn put_back(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Waits while the socket is full, and then calls `send`.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let socket = self.shared.socket.as_ref();
        loop {
            if socket.poll_write_ready(cx)?.is_pending() {
                self.shared.handle_blocked();
                return Poll::Pending;
            }
            match send(socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(count) => {
                    self.shared.handle_written();
                    return Poll::Ready(Ok(count));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Sends as much of a response as the socket accepts. Waits while the socket is full.
    pub(crate) fn poll_send_parts(
        &self,
        cx: &mut Context<'_>,
        outgoing: OutgoingParts<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| {
            send_and_mark_full(socket, || outgoing.send_to(socket.as_fd()))
        })
    }

    /// Reads and discards bytes until the client has closed its side or the discard limit is
    /// exceeded.
    fn poll_discard(&mut self, cx: &mut Context<'_>, already: usize) -> Poll<io::Result<()>> {
        let mut total = already;
        let mut scratch = [0; 4096];
        while total <= DISCARD_MAX {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.read).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            total += buffer.filled().len();
            self.discarded = Some(total);
        }
        Poll::Ready(Ok(()))
    }
}

/// Calls `send`. If `send` fills the socket, marks the socket as not writable. The next call then
/// waits for room instead of making a system call that fails.
fn send_and_mark_full(
    socket: &TcpStream,
    send: impl Fn() -> io::Result<SendOutcome>,
) -> io::Result<usize> {
    let mut count = 0;
    let tried = socket.try_io(Interest::WRITABLE, || {
        let sent = send()?;
        count = sent.count;
        if sent.full {
            Err(ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    });
    match tried {
        Err(error) if count == 0 => Err(error),
        _ => Ok(count),
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if !self.ahead.is_empty() {
            let part = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(part));
            self.shared.handle_read();
            return Poll::Ready(Ok(()));
        }
        ready!(Pin::new(&mut self.read).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.shared.handle_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| {
            send_and_mark_full(socket, || send_slices(socket.as_fd(), slices, false))
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let already = match self.discarded {
            Some(already) => already,
            None => {
                let socket = socket2::SockRef::from(self.shared.socket.as_ref());
                socket.shutdown(Shutdown::Write)?;
                self.shared.start_linger();
                self.discarded = Some(0);
                0
            }
        };
        self.poll_discard(cx, already)
    }
}
