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

/// A body as it comes.
pub(super) struct Watched {
    incoming: Incoming,
    lease: Option<Lease>,
    stall: Duration,
    timer: Pin<Box<Sleep>>,
    since_timer: u64,
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
            since_timer: 0,
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
        self.since_timer += bytes;
        if self.since_timer >= STALL_BYTES {
            self.since_timer = 0;
            self.timer.as_mut().reset(Instant::now() + self.stall);
        }
        Ok(())
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
        ready!(this.timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(Failed::Stall.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
