//! Sockets that can move from one runtime to another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// A TCP socket that can move from one runtime to another. A shared idle connection can thus be
/// read on the thread that needs the response.
#[derive(Debug)]
pub struct DetachableSocket(AttachmentState);

#[derive(Debug)]
enum AttachmentState {
    Attached(TcpStream),
    Detached(std::net::TcpStream),
    /// Moving the socket to or from a runtime failed.
    Lost,
}

/// An unencrypted or encrypted stream.
pub type ClientStream = Either<DetachableSocket, Box<TlsStream<DetachableSocket>>>;

impl DetachableSocket {
    pub(crate) fn new(socket: TcpStream) -> DetachableSocket {
        DetachableSocket(AttachmentState::Attached(socket))
    }

    pub(crate) fn detach(&mut self) -> io::Result<()> {
        self.0 = match std::mem::replace(&mut self.0, AttachmentState::Lost) {
            AttachmentState::Attached(socket) => AttachmentState::Detached(socket.into_std()?),
            other => other,
        };
        Ok(())
    }

    pub(crate) fn attach(&mut self) -> io::Result<()> {
        self.0 = match std::mem::replace(&mut self.0, AttachmentState::Lost) {
            AttachmentState::Detached(socket) => {
                AttachmentState::Attached(TcpStream::from_std(socket)?)
            }
            other => other,
        };
        Ok(())
    }

    /// Returns whether the server has neither sent bytes nor closed the connection.
    pub(crate) fn is_open_and_silent(&self) -> bool {
        let peeked = match &self.0 {
            AttachmentState::Detached(socket) => socket.peek(&mut [0]),
            AttachmentState::Attached(socket) => {
                let mut cx = Context::from_waker(Waker::noop());
                match socket.poll_peek(&mut cx, &mut ReadBuf::new(&mut [0])) {
                    Poll::Ready(peeked) => peeked,
                    Poll::Pending => return true,
                }
            }
            AttachmentState::Lost => return false,
        };
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Completes when a byte or the end of the stream can be read.
    pub(crate) fn poll_peek(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.registered_stream()?
            .poll_peek(cx, &mut ReadBuf::new(&mut [0]))
    }

    /// Calls `splice` each time the socket is readable, until `splice` returns a result other than
    /// `WouldBlock`. Returns this result.
    pub(crate) fn poll_splice<T>(
        &self,
        cx: &mut Context<'_>,
        mut splice: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let socket = self.registered_stream()?;
        loop {
            ready!(socket.poll_read_ready(cx))?;
            match socket.try_io(Interest::READABLE, || splice(socket.as_fd())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                spliced => return Poll::Ready(spliced),
            }
        }
    }

    fn registered_stream(&self) -> io::Result<&TcpStream> {
        match &self.0 {
            AttachmentState::Attached(socket) => Ok(socket),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn registered_pin(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        match &mut self.get_mut().0 {
            AttachmentState::Attached(socket) => Ok(Pin::new(socket)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Reads what has arrived. Never waits, because the socket is non-blocking.
impl io::Read for DetachableSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            AttachmentState::Detached(socket) => io::Read::read(socket, into),
            AttachmentState::Attached(socket) => socket.try_read(into),
            AttachmentState::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl AsyncRead for DetachableSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.registered_pin()?.poll_read(cx, into)
    }
}

impl AsyncWrite for DetachableSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.registered_pin()?.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registered_pin()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registered_pin()?.poll_shutdown(cx)
    }
}
