//! Writes interim responses while the final response is prepared.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use crate::conn::{ConnectionIo, ConnectionState};

/// Interim responses of the current request that were taken from the queue.
#[derive(Default)]
pub(super) struct InterimWriter {
    bytes: Vec<u8>,
    written: usize,
}

impl InterimWriter {
    /// Writes the waiting interim responses until the socket accepts no more bytes. Registers the
    /// task to be woken when further interim responses arrive.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(super) fn write_queued_interims(
        &mut self,
        io: &mut ConnectionIo,
        shared: &ConnectionState,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        // Registers the waker for further interim responses. Ignores whether a close was requested,
        // because the fast path checks for a close again when it starts the final response.
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
            // Takes further responses from the queue only when all earlier bytes are written. The
            // queue is bounded, so a client that does not read cannot make this buffer grow.
            self.bytes = shared.interim.take_interims(shared.request_count());
            if self.bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the bytes that must be sent before the final response. Later interim responses are
    /// dropped.
    pub(super) fn take_unsent_interims(&mut self, shared: &ConnectionState) -> Vec<u8> {
        shared.interim.close_queue();
        let mut rest = std::mem::take(&mut self.bytes);
        rest.drain(..std::mem::take(&mut self.written));
        rest.extend(shared.interim.take_interims(shared.request_count()));
        rest
    }
}
