//! An answer's body, which must not stall, and gives its connection back when it ended well.

use super::pool::Lease;
use super::{Failed, Timeouts};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use object_store::client::HttpError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Bytes that must come within the stall timeout, unless the body ends.
const STALL_BYTES: u64 = 16 << 10;

/// A body as it comes. Only waiting counts as a stall: whoever takes the bytes may pause.
pub(super) struct Watched {
    incoming: Incoming,
    lease: Option<Lease>,
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
    pub(super) fn new(
        incoming: Incoming,
        lease: Lease,
        timeouts: Timeouts,
        bytes_max: u64,
    ) -> Watched {
        let mut watched = Watched {
            incoming,
            lease: Some(lease),
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
        if self.incoming.is_end_stream()
            && let Some(lease) = self.lease.take()
        {
            lease.done();
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
        if let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(cx) {
            if let Some(since) = this.waiting.take() {
                this.waited += since.elapsed();
            }
            let frame = match frame {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                    this.took(bytes).map(|()| frame)
                }
                Some(Err(error)) => Err(Failed::of_hyper(&error)),
                None => {
                    this.end_if_over();
                    return Poll::Ready(None);
                }
            };
            this.end_if_over();
            return Poll::Ready(Some(frame.map_err(HttpError::from)));
        }
        ready!(this.poll_stall(cx));
        Poll::Ready(Some(Err(Failed::Stall.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
