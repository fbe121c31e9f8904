//! A connection's bytes, with TLS or without, on whichever runtime its user is.

use super::pool::Guard;
use crate::pipes::{Filled, Pipe};
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// A socket that can leave its runtime and enter another one, so that whoever asks for bytes
/// reads them on his own thread.
pub(crate) struct Socket(At);

enum At {
    Runtime(TcpStream),
    Nowhere(std::net::TcpStream),
    Lost,
}

/// What HTTP is spoken on: plain, or with TLS.
pub(crate) type Stream = Either<Socket, Box<TlsStream<Socket>>>;

/// A stream that is counted for as long as it is open.
pub(crate) struct Counted {
    pub(super) stream: Stream,
    pub(super) guard: Guard,
}

impl Socket {
    pub(super) fn new(socket: TcpStream) -> Socket {
        Socket(At::Runtime(socket))
    }

    fn leave(&mut self) -> io::Result<()> {
        self.0 = match std::mem::replace(&mut self.0, At::Lost) {
            At::Runtime(socket) => At::Nowhere(socket.into_std()?),
            other => other,
        };
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        self.0 = match std::mem::replace(&mut self.0, At::Lost) {
            At::Nowhere(socket) => At::Runtime(TcpStream::from_std(socket)?),
            other => other,
        };
        Ok(())
    }

    /// Ready when there is a byte to read, or the end.
    pub(super) fn poll_peek(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &self.0 {
            At::Runtime(socket) => socket.poll_peek(cx, &mut ReadBuf::new(&mut [0])),
            _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Moves up to `most` bytes into a pipe.
    pub(super) fn poll_pipe(
        &self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        most: usize,
    ) -> Poll<io::Result<Filled>> {
        let At::Runtime(socket) = &self.0 else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        loop {
            ready!(socket.poll_read_ready(cx))?;
            let fill = || pipe.fill(socket.as_fd(), most);
            match socket.try_io(Interest::READABLE, fill) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => return Poll::Ready(filled),
            }
        }
    }

    fn here(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        match &mut self.get_mut().0 {
            At::Runtime(socket) => Ok(Pin::new(socket)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Counted {
    fn socket(&mut self) -> &mut Socket {
        match &mut self.stream {
            Either::Left(socket) => socket,
            Either::Right(tls) => tls.get_mut().0,
        }
    }

    /// Leaves its runtime: nobody waits for its bytes.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.socket().leave()
    }

    /// Enters the runtime that this is called on.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        self.socket().enter()
    }

    /// Whether the other end left it open, and said nothing that nobody asked for. Only of one that
    /// has left its runtime.
    pub(super) fn is_open(&mut self) -> bool {
        // TLS speaks for itself at times, such as of new sessions.
        let may_speak = matches!(self.stream, Either::Right(_));
        let At::Nowhere(socket) = &self.socket().0 else {
            return false;
        };
        match socket.peek(&mut [0]) {
            Ok(count) => count > 0 && may_speak,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.here()?.poll_read(cx, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_shutdown(cx)
    }
}
