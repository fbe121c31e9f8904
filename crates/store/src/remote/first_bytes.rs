//! The first bytes of an object, which are fetched when the object is opened.

use super::resuming_stream::ResumingStream;
use crate::Error;
use bytes::Bytes;
use std::ops::Range;

/// The first bytes of an object. Some of these bytes may not have been received yet.
#[derive(Default)]
pub(super) struct FirstBytes {
    received: Bytes,
    /// The rest of the response, while the response is being received.
    rest: Option<ResumingStream>,
}

impl FirstBytes {
    /// Creates first bytes that have been received completely.
    pub(super) fn from_complete_bytes(received: Bytes) -> FirstBytes {
        FirstBytes {
            received,
            rest: None,
        }
    }

    /// Waits for the first part of the response `rest`.
    pub(super) async fn receive_start(mut rest: ResumingStream) -> Result<FirstBytes, Error> {
        let received = rest.next_bytes().await?.unwrap_or_default();
        Ok(FirstBytes {
            received,
            rest: Some(rest),
        })
    }

    /// Returns the received bytes at the start of `range`.
    pub(super) fn slice(&self, range: &Range<u64>) -> Bytes {
        let len = self.received.len() as u64;
        // The offset is at most the number of received bytes, which is a usize.
        let place = |at: u64| at.min(len) as usize;
        self.received.slice(place(range.start)..place(range.end))
    }

    /// Returns whether the response is still being received and continues `range`. The range then
    /// starts within or directly after the received bytes, and ends beyond these bytes.
    pub(super) fn is_receiving_rest_of(&self, range: &Range<u64>) -> bool {
        let len = self.received.len() as u64;
        self.rest.is_some() && range.start <= len && len < range.end
    }

    /// Returns the received bytes from offset `at`, and takes the rest of the response.
    pub(super) fn split(&mut self, at: u64) -> (Bytes, Option<ResumingStream>) {
        (self.slice(&(at..u64::MAX)), self.rest.take())
    }

    /// Waits until all bytes before offset `end` have been received, or until the response ends.
    pub(super) async fn receive_until(self, end: u64) -> Result<FirstBytes, Error> {
        let Some(mut rest) = self.rest else {
            return Ok(self);
        };
        let mut received = self.received.to_vec();
        while (received.len() as u64) < end {
            match rest.next_bytes().await? {
                Some(bytes) => received.extend_from_slice(&bytes),
                None => return Ok(FirstBytes::from_complete_bytes(received.into())),
            }
        }
        Ok(FirstBytes {
            received: received.into(),
            rest: Some(rest),
        })
    }
}
