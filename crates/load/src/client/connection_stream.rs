//! Reads and sends the bytes of a connection, with or without TLS. Without TLS, the kernel can
//! discard received bytes.

use rustix::net::{RecvFlags, SendFlags};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Maximum number of bytes that one `recv` discards, and length of the buffer `UNTOUCHED`. The
/// kernel never writes to this buffer, so the buffer occupies no physical memory.
const SKIP_MAX: usize = 64 << 20;

/// Maximum number of bytes per read if the body is needed.
const READ_MAX: usize = 64 << 10;

/// Maximum number of bytes per read if the body is discarded. This is enough for a head and a small
/// body.
const READ_HEAD: usize = 16 << 10;

thread_local! {
    /// Read buffer for heads, and for bodies that are needed. There is one buffer per thread, so
    /// that idle connections need no buffer.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_MAX]);
    /// Target buffer of reads with `MSG_TRUNC`, which discard the bytes instead of writing to the
    /// buffer.
    static UNTOUCHED: RefCell<Vec<u8>> = RefCell::new(vec![0; SKIP_MAX]);
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum ConnectionStream {
    /// TCP without TLS.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl ConnectionStream {
    /// Returns whether the connection has no TLS, so that the kernel can discard bytes.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, ConnectionStream::Plain(_))
    }

    /// Returns whether the connection can be reused: the server has neither closed it nor sent bytes
    /// that no request asked for. This costs a system call only if the event loop has reported an
    /// event since the last read.
    pub(super) fn is_idle(&mut self) -> bool {
        let is_blocked = |read: io::Result<()>| {
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        match self {
            ConnectionStream::Plain(socket) => {
                is_blocked(socket.try_io(Interest::READABLE, || {
                    rustix::net::recv(&*socket, &mut [0u8; 1], RecvFlags::PEEK)?;
                    Ok(())
                }))
            }
            // This read also processes session tickets, which TLS servers send at any time.
            ConnectionStream::Tls(stream) => {
                let mut byte = [0];
                let mut cx = Context::from_waker(Waker::noop());
                Pin::new(stream.as_mut())
                    .poll_read(&mut cx, &mut ReadBuf::new(&mut byte))
                    .is_pending()
            }
        }
    }

    /// Discards up to `most` bytes and returns their number, which is 0 at the end of the stream.
    pub(super) fn poll_skip(&mut self, cx: &mut Context<'_>, most: u64) -> Poll<io::Result<u64>> {
        let ConnectionStream::Plain(socket) = self else {
            return self.poll_read_to_callback(cx, false, |bytes| bytes.len() as u64);
        };
        let most = usize::try_from(most).map_or(SKIP_MAX, |most| most.min(SKIP_MAX));
        UNTOUCHED.with_borrow_mut(|untouched| {
            let got = ready!(poll_recv(
                socket,
                cx,
                &mut untouched[..most],
                RecvFlags::TRUNC
            ))?;
            Poll::Ready(Ok(got as u64))
        })
    }

    /// Reads available bytes and passes them to `look`. At the end of the stream, passes an empty
    /// slice.
    pub(super) fn poll_read_to_callback<T>(
        &mut self,
        cx: &mut Context<'_>,
        all: bool,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let most = if all { READ_MAX } else { READ_HEAD };
            let got = match self {
                ConnectionStream::Plain(socket) => ready!(poll_recv(
                    socket,
                    cx,
                    &mut scratch[..most],
                    RecvFlags::empty()
                ))?,
                ConnectionStream::Tls(stream) => {
                    let mut buffer = ReadBuf::new(&mut scratch[..most]);
                    ready!(Pin::new(stream.as_mut()).poll_read(cx, &mut buffer))?;
                    buffer.filled().len()
                }
            };
            Poll::Ready(Ok(look(&scratch[..got])))
        })
    }

    /// Sends the rest of `bytes`, starting at position `*done`, and updates `*done`.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        done: &mut usize,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = bytes.get(*done..).filter(|rest| !rest.is_empty()) {
            let sent = match self {
                ConnectionStream::Plain(socket) => ready!(poll_send_tcp(socket, cx, rest))?,
                ConnectionStream::Tls(stream) => {
                    ready!(Pin::new(stream.as_mut()).poll_write(cx, rest))?
                }
            };
            match sent {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => *done += sent,
            }
        }
        match self {
            ConnectionStream::Plain(_) => Poll::Ready(Ok(())),
            ConnectionStream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }
}

/// Receives available bytes into a buffer and returns their number, which is 0 at the end of the
/// stream. With `MSG_TRUNC`, the kernel writes nothing to the buffer.
fn poll_recv(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        let mut got = 0;
        // A read that does not fill the buffer has emptied the socket. Returning `WouldBlock`
        // clears tokio's readiness flag, which saves a read that would find no bytes.
        let read = socket.try_io(Interest::READABLE, || {
            got = rustix::net::recv(socket, &mut *buffer, flags)?.1;
            match got {
                0 => Ok(()),
                _ if got < buffer.len() => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        match read {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(error));
            }
            Err(_) if got == 0 => continue,
            _ => return Poll::Ready(Ok(got)),
        }
    }
}

/// Sends as many bytes as the socket accepts.
fn poll_send_tcp(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_write_ready(cx))?;
        let sent = socket.try_io(Interest::WRITABLE, || {
            Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?)
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            sent => return Poll::Ready(sent),
        }
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            ConnectionStream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ConnectionStream::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            ConnectionStream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(socket) => Pin::new(socket).poll_flush(cx),
            ConnectionStream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            ConnectionStream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
