//! The first bytes of an object, which are fetched when it is opened.

use super::resuming_stream::ResumingStream;
use crate::Error;
use bytes::Bytes;
use std::ops::Range;

/// The first bytes, as far as they have been received.
#[derive(Default)]
pub(super) struct FirstBytes {
    received: Bytes,
    /// The rest of the same response.
    rest: Option<ResumingStream>,
}

impl FirstBytes {
    /// Creates first bytes that have been received completely.
    pub(super) fn complete(received: Bytes) -> FirstBytes {
        FirstBytes {
            received,
            rest: None,
        }
    }

    /// Waits for the start of the object's first bytes.
    pub(super) async fn receive_start(mut rest: ResumingStream) -> Result<FirstBytes, Error> {
        let received = rest.next().await?.unwrap_or_default();
        Ok(FirstBytes {
            received,
            rest: Some(rest),
        })
    }

    /// Returns the received bytes at the start of `range`.
    pub(super) fn slice(&self, range: &Range<u64>) -> Bytes {
        let len = self.received.len() as u64;
        // Within the head's length, which is a usize.
        let place = |at: u64| at.min(len) as usize;
        self.received.slice(place(range.start)..place(range.end))
    }

    /// Returns whether `range` starts in these first bytes and extends beyond the received ones.
    pub(super) fn extends_beyond(&self, range: &Range<u64>) -> bool {
        let len = self.received.len() as u64;
        self.rest.is_some() && range.start <= len && len < range.end
    }

    /// Takes the bytes from `at` on with the rest of the response.
    pub(super) fn split(&mut self, at: u64) -> (Bytes, Option<ResumingStream>) {
        (self.slice(&(at..u64::MAX)), self.rest.take())
    }

    /// Waits until the first bytes reach `end` or are complete.
    pub(super) async fn fill(self, end: u64) -> Result<FirstBytes, Error> {
        let Some(mut rest) = self.rest else {
            return Ok(self);
        };
        let mut received = self.received.to_vec();
        while (received.len() as u64) < end {
            match rest.next().await? {
                Some(bytes) => received.extend_from_slice(&bytes),
                None => return Ok(FirstBytes::complete(received.into())),
            }
        }
        Ok(FirstBytes {
            received: received.into(),
            rest: Some(rest),
        })
    }
}
