//! Response bodies with a stall timeout.

use super::pooled_connection::PooledConnection;
use super::request_facts::edit_current_notes;
use super::{StorageTimeouts, TransportError};
use crate::pipe_pool::Pipe;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::HttpError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use upstream::BodyData;

/// Bytes that must be received within the stall timeout, unless the body ends earlier.
const STALL_BYTES: u64 = 16 << 10;

/// A body that is being received. Only time spent waiting for bytes counts towards the stall
/// timeout. A pause of the reader does not count.
pub(crate) struct WatchedBody {
    /// `None` once the body is complete.
    lease: Option<PooledConnection>,
    /// Whether the connection returns to the pool when the body is complete.
    keep: bool,
    stall: Duration,
    timer: Pin<Box<Sleep>>,
    /// Start of the current wait for bytes.
    waiting: Option<Instant>,
    /// Time spent waiting since the last complete 16 KiB, and the bytes received since then.
    waited: Duration,
    received: u64,
    left: u64,
}

impl WatchedBody {
    /// Starts to watch a body. A body of more than `bytes_max` bytes is an error.
    pub(super) fn new(
        lease: PooledConnection,
        keep: bool,
        timeouts: StorageTimeouts,
        bytes_max: u64,
    ) -> WatchedBody {
        let mut watched = WatchedBody {
            lease: Some(lease),
            keep,
            stall: timeouts.stall,
            timer: Box::pin(tokio::time::sleep(timeouts.stall)),
            waiting: None,
            waited: Duration::ZERO,
            received: 0,
            left: bytes_max,
        };
        watched.release_if_complete();
        watched
    }

    fn release_if_complete(&mut self) {
        if let Some(lease) = self.lease.take_if(|lease| lease.is_complete())
            && self.keep
        {
            lease.return_to_pool();
        }
    }

    fn count_received(&mut self, bytes: u64) -> Result<(), TransportError> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(TransportError::TooLong)?;
        self.received += bytes;
        if self.received >= STALL_BYTES {
            self.received = 0;
            self.waited = Duration::ZERO;
        }
        Ok(())
    }

    /// Returns the next bytes, or `None` at the end of the body.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        let poll = |lease: &mut PooledConnection, cx: &mut Context<'_>| lease.poll_data(cx);
        self.poll_with_timeout(cx, poll, |bytes| bytes.len() as u64)
    }

    /// Returns the next bytes, or `None` at the end of the body. The bytes are spliced into `pipe`
    /// if possible.
    pub(crate) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<BodyData, TransportError>>> {
        let poll = |lease: &mut PooledConnection, cx: &mut Context<'_>| lease.poll_splice(cx, pipe);
        self.poll_with_timeout(cx, poll, BodyData::len)
    }

    /// Returns whether the bytes can be spliced, or `None` once the body is complete.
    pub(crate) fn is_unencrypted_http1(&self) -> Option<bool> {
        self.lease
            .as_ref()
            .map(PooledConnection::is_unencrypted_http1)
    }

    /// Completes when bytes or the end of the body can be read.
    pub(crate) fn poll_readable(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let poll =
            |lease: &mut PooledConnection, cx: &mut Context<'_>| lease.poll_readable(cx).map(Some);
        let begun = self.poll_with_timeout(cx, poll, |()| 0);
        begun.map(|begun| begun.unwrap_or(Ok(())))
    }

    /// Polls the connection. Returns an error when the stall timeout elapses. `len` returns the
    /// number of body bytes in a result.
    fn poll_with_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(
            &mut PooledConnection,
            &mut Context<'_>,
        ) -> Poll<Option<Result<T, TransportError>>>,
        len: impl FnOnce(&T) -> u64,
    ) -> Poll<Option<Result<T, TransportError>>> {
        let Some(lease) = &mut self.lease else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(some) = poll(lease, cx) {
            if let Some(since) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            let some = some.map(|some| {
                let some = some?;
                self.count_received(len(&some))?;
                Ok(some)
            });
            self.release_if_complete();
            return Poll::Ready(some);
        }
        ready!(self.poll_stall(cx));
        Poll::Ready(Some(Err(TransportError::Stalled)))
    }

    /// Completes when the stall timeout has elapsed.
    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            let now = Instant::now();
            self.waiting = Some(now);
            let rest = self.stall.saturating_sub(self.waited);
            self.timer.as_mut().reset(now + rest);
        }
        self.timer.as_mut().poll(cx)
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let data = self.poll_data(cx);
        data.map_ok(Frame::data).map_err(|failed| {
            // `object_store` reads this body, but its own error does not contain the cause. The
            // cause is therefore recorded here.
            edit_current_notes(|notes| notes.error = Some(failed.clone()));
            HttpError::from(failed)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = match &self.lease {
            Some(lease) => lease.remaining(),
            None => Some(0),
        };
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
