//! A range that is being fetched or was fetched, with any number of readers.

use super::MemoryLease;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Appended bytes are joined with the last chunk up to this size. Each chunk takes about 40 bytes
/// of memory in addition to its content. The limits of the cache do not count these 40 bytes.
const JOINED_BYTES_MAX: usize = 512;

/// A range of an object. The fetch pushes the bytes in order, and then ends the flight.
pub(crate) struct RangeFlight<E> {
    range: Range<u64>,
    _held: MemoryLease,
    state: Mutex<FlightState<E>>,
    /// Notified whenever the state changes.
    changes: watch::Sender<()>,
}

struct FlightState<E> {
    chunks: Vec<Bytes>,
    /// The end of each chunk, relative to the start of the range.
    ends: Vec<u64>,
    outcome: Option<Result<(), E>>,
}

impl<E: Clone> RangeFlight<E> {
    pub(super) fn new(range: Range<u64>, held: MemoryLease) -> RangeFlight<E> {
        let state = FlightState {
            chunks: Vec::new(),
            ends: Vec::new(),
            outcome: None,
        };
        RangeFlight {
            range,
            _held: held,
            state: Mutex::new(state),
            changes: watch::Sender::new(()),
        }
    }

    /// The range of the object.
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Appends bytes. The caller must not append more bytes than the range contains.
    pub(crate) fn append_bytes(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.lock().append_bytes(bytes);
        self.changes.send_replace(());
    }

    /// Ends the flight. Later calls do not change the outcome.
    pub(crate) fn end_flight(&self, outcome: Result<(), E>) {
        self.lock().outcome.get_or_insert(outcome);
        self.changes.send_replace(());
    }

    /// Returns whether all bytes were received.
    pub(crate) fn has_all_bytes(&self) -> bool {
        let state = self.lock();
        let is_filled = state.filled_len() == self.range.end - self.range.start;
        is_filled && matches!(state.outcome, Some(Ok(())))
    }

    /// Waits for the first byte of `wanted`, and then returns the available bytes of `wanted`.
    /// `wanted` must be a non-empty part of the range. Cancel safe.
    pub(crate) async fn read_available(&self, wanted: &Range<u64>) -> Result<Vec<Bytes>, E> {
        let from = wanted.start - self.range.start;
        let to = wanted.end - self.range.start;
        let mut changes = self.changes.subscribe();
        loop {
            {
                let state = self.lock();
                if state.filled_len() > from {
                    return Ok(state.slices(from, to));
                }
                if let Some(Err(error)) = &state.outcome {
                    return Err(error.clone());
                }
            }
            // This call cannot fail, because `self` owns the sender.
            let _ = changes.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, FlightState<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> FlightState<E> {
    fn append_bytes(&mut self, bytes: Bytes) {
        let end = self.filled_len() + bytes.len() as u64;
        match (self.chunks.last_mut(), self.ends.last_mut()) {
            (Some(last), Some(last_end)) if last.len() + bytes.len() <= JOINED_BYTES_MAX => {
                *last = [&last[..], &bytes[..]].concat().into();
                *last_end = end;
            }
            _ => {
                self.chunks.push(bytes);
                self.ends.push(end);
            }
        }
    }

    fn filled_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn slices(&self, from: u64, to: u64) -> Vec<Bytes> {
        let first = self.ends.partition_point(|end| *end <= from);
        let mut slices = Vec::new();
        let start = first.checked_sub(1).and_then(|n| self.ends.get(n));
        let mut start = start.copied().unwrap_or(0);
        for (chunk, end) in self.chunks.iter().zip(&self.ends).skip(first) {
            if start >= to {
                break;
            }
            // The offsets are within the chunk, so they fit in a usize.
            let (a, b) = (from.max(start) - start, to.min(*end) - start);
            slices.push(chunk.slice(a as usize..b as usize));
            start = *end;
        }
        slices
    }
}
