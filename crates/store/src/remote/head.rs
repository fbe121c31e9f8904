//! What comes along when an object is opened: its first bytes, and those that are on their way.

use super::stream::Whole;
use crate::Error;
use bytes::Bytes;
use std::ops::Range;

/// The first bytes of an object, as far as they have come.
#[derive(Default)]
pub(super) struct Head {
    came: Bytes,
    /// What follows on them in the same answer.
    rest: Option<Whole>,
}

impl Head {
    /// One that has come as a whole.
    pub(super) fn whole(came: Bytes) -> Head {
        Head { came, rest: None }
    }

    /// One of which only the beginning is waited for.
    pub(super) async fn begun(mut rest: Whole) -> Result<Head, Error> {
        let came = rest.next().await?.unwrap_or_default();
        Ok(Head {
            came,
            rest: Some(rest),
        })
    }

    /// What has come of the begin of `range`.
    pub(super) fn part(&self, range: &Range<u64>) -> Bytes {
        let len = self.came.len() as u64;
        // Within the head's length, which is a usize.
        let place = |at: u64| at.min(len) as usize;
        self.came.slice(place(range.start)..place(range.end))
    }

    /// Whether `range` begins in it, and does not end in what has come.
    pub(super) fn goes_on(&self, range: &Range<u64>) -> bool {
        let len = self.came.len() as u64;
        self.rest.is_some() && range.start <= len && len < range.end
    }

    /// What has come from `at` on, and what follows on it; that is no part of the head any more.
    pub(super) fn split(&mut self, at: u64) -> (Bytes, Option<Whole>) {
        (self.part(&(at..u64::MAX)), self.rest.take())
    }

    /// Waits until it has come up to `end`, or as a whole.
    pub(super) async fn fill(self, end: u64) -> Result<Head, Error> {
        let Some(mut rest) = self.rest else {
            return Ok(self);
        };
        let mut came = self.came.to_vec();
        while (came.len() as u64) < end {
            match rest.next().await? {
                Some(bytes) => came.extend_from_slice(&bytes),
                None => return Ok(Head::whole(came.into())),
            }
        }
        Ok(Head {
            came: came.into(),
            rest: Some(rest),
        })
    }
}
