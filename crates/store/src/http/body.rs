//! An answer's body, which must not stall, and gives its connection back when it ended well.

use super::lease::Lease;
use super::wire::Came;
use super::{Failed, Timeouts};
use crate::pipes::Pipe;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::HttpError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Bytes that must come within the stall timeout, unless the body ends.
const STALL_BYTES: u64 = 16 << 10;

/// A body as it comes. Only waiting counts as a stall: whoever takes the bytes may pause.
pub(crate) struct Watched {
    /// Until the body is over.
    lease: Option<Lease>,
    /// Whether the connection is kept then.
    keep: bool,
    stall: Duration,
    timer: Pin<Box<Sleep>>,
    /// Since when the next bytes are waited for, if they are.
    waiting: Option<Instant>,
    /// How long was waited for the bytes since the last full 16 KiB, and how many they are.
    waited: Duration,
    came: u64,
    left: u64,
}

impl Watched {
    /// `bytes_max`: more is an error.
    pub(super) fn new(lease: Lease, keep: bool, timeouts: Timeouts, bytes_max: u64) -> Watched {
        let mut watched = Watched {
            lease: Some(lease),
            keep,
            stall: timeouts.stall,
            timer: Box::pin(tokio::time::sleep(timeouts.stall)),
            waiting: None,
            waited: Duration::ZERO,
            came: 0,
            left: bytes_max,
        };
        watched.end_if_over();
        watched
    }

    fn end_if_over(&mut self) {
        if let Some(lease) = self.lease.take_if(|lease| lease.is_over()) {
            lease.done(self.keep);
        }
    }

    fn took(&mut self, bytes: u64) -> Result<(), Failed> {
        self.left = self.left.checked_sub(bytes).ok_or(Failed::TooLong)?;
        self.came += bytes;
        if self.came >= STALL_BYTES {
            self.came = 0;
            self.waited = Duration::ZERO;
        }
        Ok(())
    }

    /// The next bytes; none at the end.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failed>>> {
        let poll = |lease: &mut Lease, cx: &mut Context<'_>| lease.poll_data(cx);
        self.poll_some(cx, poll, |bytes| bytes.len() as u64)
    }

    /// The next bytes, in `pipe` where they can be moved there; none at the end.
    pub(crate) fn poll_piped(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<Came, Failed>>> {
        let poll = |lease: &mut Lease, cx: &mut Context<'_>| lease.poll_piped(cx, pipe);
        self.poll_some(cx, poll, Came::len)
    }

    /// Whether it comes as it is on a connection of its own; `None`: it is over.
    pub(crate) fn is_plain(&self) -> Option<bool> {
        self.lease.as_ref().map(Lease::is_plain)
    }

    /// Ready when something is there, or the end.
    pub(crate) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let poll = |lease: &mut Lease, cx: &mut Context<'_>| lease.poll_begun(cx).map(Some);
        let begun = self.poll_some(cx, poll, |()| 0);
        begun.map(|begun| begun.unwrap_or(Ok(())))
    }

    /// What `poll` gives of the connection, and how many bytes that takes, within the time it has.
    fn poll_some<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Lease, &mut Context<'_>) -> Poll<Option<Result<T, Failed>>>,
        len: impl FnOnce(&T) -> u64,
    ) -> Poll<Option<Result<T, Failed>>> {
        let Some(lease) = &mut self.lease else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(some) = poll(lease, cx) {
            if let Some(since) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            let some = some.map(|some| {
                let some = some?;
                self.took(len(&some))?;
                Ok(some)
            });
            self.end_if_over();
            return Poll::Ready(some);
        }
        ready!(self.poll_stall(cx));
        Poll::Ready(Some(Err(Failed::Stall)))
    }

    /// Ready once it was waited for too long.
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

impl Body for Watched {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let data = self.poll_data(cx);
        data.map_ok(Frame::data).map_err(HttpError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = match &self.lease {
            Some(lease) => lease.left(),
            None => Some(0),
        };
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
