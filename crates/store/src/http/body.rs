//! An answer's body, which must not stall, and gives its connection back when it ended well.

use super::lease::Lease;
use super::{Failed, Timeouts};
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
pub(super) struct Watched {
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
        let this = &mut *self;
        let Some(lease) = &mut this.lease else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(data) = lease.poll_data(cx) {
            if let Some(since) = this.waiting.take() {
                this.waited += since.elapsed();
            }
            let data = data.map(|data| {
                let bytes = data?;
                this.took(bytes.len() as u64)?;
                Ok(Frame::data(bytes))
            });
            this.end_if_over();
            return Poll::Ready(data.map(|data| data.map_err(|failed: Failed| failed.into())));
        }
        ready!(this.poll_stall(cx));
        Poll::Ready(Some(Err(Failed::Stall.into())))
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
