//! One range being fetched, or fetched: a body that grows, read by all who want it.

use super::Held;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A range of an object. Whoever fetches it pushes its bytes in order, and ends it.
pub(crate) struct Flight<E> {
    range: Range<u64>,
    _held: Held,
    state: Mutex<State<E>>,
    /// Changes whenever the state does.
    told: watch::Sender<()>,
}

struct State<E> {
    chunks: Vec<Bytes>,
    /// Where each chunk ends, from the range's start.
    ends: Vec<u64>,
    outcome: Option<Result<(), E>>,
}

impl<E: Clone> Flight<E> {
    pub(super) fn new(range: Range<u64>, held: Held) -> Flight<E> {
        let state = State {
            chunks: Vec::new(),
            ends: Vec::new(),
            outcome: None,
        };
        Flight {
            range,
            _held: held,
            state: Mutex::new(state),
            told: watch::Sender::new(()),
        }
    }

    /// Which bytes of the object.
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The next bytes. The caller takes care that they are right, and no more than the range has.
    pub(crate) fn push(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.lock();
        let end = state.filled() + bytes.len() as u64;
        state.chunks.push(bytes);
        state.ends.push(end);
        drop(state);
        self.told.send_replace(());
    }

    /// Nothing more comes.
    pub(crate) fn end(&self, outcome: Result<(), E>) {
        self.lock().outcome.get_or_insert(outcome);
        self.told.send_replace(());
    }

    /// Whether all of its bytes are here.
    pub(crate) fn is_whole(&self) -> bool {
        let state = self.lock();
        let whole = state.filled() == self.range.end - self.range.start;
        whole && matches!(state.outcome, Some(Ok(())))
    }

    /// What there is of `wanted` (of the object, not empty, inside the range), waiting until
    /// there is at least one byte of it. May be dropped and asked again.
    pub(crate) async fn some(&self, wanted: &Range<u64>) -> Result<Vec<Bytes>, E> {
        let from = wanted.start - self.range.start;
        let to = wanted.end - self.range.start;
        let mut told = self.told.subscribe();
        loop {
            {
                let state = self.lock();
                if state.filled() > from {
                    return Ok(state.slices(from, to));
                }
                if let Some(Err(error)) = &state.outcome {
                    return Err(error.clone());
                }
            }
            // The sender is ours, so this only waits.
            let _ = told.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> State<E> {
    fn filled(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn slices(&self, from: u64, to: u64) -> Vec<Bytes> {
        let first = self.ends.partition_point(|end| *end <= from);
        let mut slices = Vec::new();
        let begin = first.checked_sub(1).and_then(|n| self.ends.get(n));
        let mut begin = begin.copied().unwrap_or(0);
        for (chunk, end) in self.chunks.iter().zip(&self.ends).skip(first) {
            if begin >= to {
                break;
            }
            // Within the chunk's length, which is a usize.
            let (a, b) = (from.max(begin) - begin, to.min(*end) - begin);
            slices.push(chunk.slice(a as usize..b as usize));
            begin = *end;
        }
        slices
    }
}
