//! The socket as HTTP sees it: vectored writes, progress noted, and a lingering close.

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

use super::Shared;
use super::mapped::send_memory;
use super::piped;

/// The most bytes thrown away from a client that goes on sending after our end.
const DISCARD_MAX: usize = 1 << 20;

/// One connection's socket. The write half lies in [`Shared`], where handlers reach its options.
#[derive(Debug)]
pub(crate) struct Io {
    read: OwnedReadHalf,
    shared: Arc<Shared>,
    /// What was read before and put back.
    ahead: Bytes,
    /// Since we closed our side: bytes read and thrown away.
    discarded: Option<usize>,
}

impl Io {
    pub(crate) fn new(read: OwnedReadHalf, shared: Arc<Shared>) -> Io {
        Io {
            read,
            shared,
            ahead: Bytes::new(),
            discarded: None,
        }
    }

    /// Puts back what was read last.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Tries, and waits for the socket while it is full.
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

    /// Reads until the client has closed too, or has sent more than is worth waiting for.
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

impl AsyncRead for Io {
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

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if piped::stands_in(bytes) {
            let what = "bytes in a pipe are written as if they were in memory";
            return Poll::Ready(Err(io::Error::other(what)));
        }
        self.poll_send(cx, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Shared { files, pipes, .. } = &*self.shared;
        self.poll_send(cx, |socket| {
            let mut count = 0;
            let memory = |run: &[IoSlice<'_>], more| match files.send(socket.as_fd(), run) {
                Some(sent) => sent,
                None => send_memory(socket.as_fd(), run, more),
            };
            let tried = socket.try_io(Interest::WRITABLE, || {
                let sent = match pipes.send(socket.as_fd(), slices, memory) {
                    Some(sent) => sent?,
                    None => memory(slices, false)?,
                };
                count = sent.count;
                // Wait for room instead of trying in vain.
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
                self.shared.handle_closed();
                self.discarded = Some(0);
                0
            }
        };
        self.poll_discard(cx, already)
    }
}
