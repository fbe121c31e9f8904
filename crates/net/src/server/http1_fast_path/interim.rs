//! Writes interim responses while the final one is prepared.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use crate::conn::{ConnectionIo, ConnectionState};

/// The interim responses of the current request that have been taken from the queue.
#[derive(Default)]
pub(super) struct InterimWriter {
    bytes: Vec<u8>,
    written: usize,
}

impl InterimWriter {
    /// Writes the waiting interim responses, as far as the socket accepts them. The task is woken
    /// when more waits.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(super) fn write_waiting(
        &mut self,
        io: &mut ConnectionIo,
        shared: &ConnectionState,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        // Registers the waker for further interim responses. The call also returns whether a close
        // was requested, which is ignored here until the response is sent.
        let _ = shared.poll_closing(cx.waker());
        loop {
            while let Some(rest) = self.bytes.get(self.written..).filter(|r| !r.is_empty()) {
                match Pin::new(&mut *io).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                    Poll::Ready(count) => self.written += count?,
                    Poll::Pending => return Ok(()),
                }
            }
            self.written = 0;
            // Takes no more while bytes wait: the queue is bounded, and a client that does not read
            // must not make this buffer grow.
            self.bytes = shared.interim.take(shared.request_count());
            if self.bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the bytes that must precede the final response. Drops later interim responses.
    pub(super) fn take_rest(&mut self, shared: &ConnectionState) -> Vec<u8> {
        shared.interim.close();
        let mut rest = std::mem::take(&mut self.bytes);
        rest.drain(..std::mem::take(&mut self.written));
        rest.extend(shared.interim.take(shared.request_count()));
        rest
    }
}
