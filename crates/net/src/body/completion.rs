//! Completion of a body: the number of sent bytes, the time of the first byte, and whether all
//! bytes were sent.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::BodyCut;

/// The result of sending a body.
#[derive(Debug, Clone)]
pub struct BodyCompletion {
    /// Bytes taken by the connection (handed to the kernel, or to TLS).
    pub bytes: u64,
    /// Whether all declared bytes were taken.
    pub complete: bool,
    /// Time when the first byte was taken; `None` if no byte was taken or `timed` was not set.
    pub first_byte: Option<Instant>,
    /// Time when the last byte was taken or the body was dropped, if `timed` was set.
    pub finished: Option<Instant>,
    /// The source's error. If it is `None` and the body is incomplete, the client disconnected or
    /// the server cut the connection.
    pub error: Option<BodyCut>,
}

type CompletionHook = Box<dyn FnOnce(&BodyCompletion) + Send + Sync>;

/// Progress shared by a body and its chunks; dropping the last of them calls the hook.
pub(super) struct SendProgress {
    expected: AtomicU64,
    sent: AtomicU64,
    /// Whether to measure times: reading the clock costs something.
    timed: bool,
    first_taken: OnceLock<FirstTaken>,
    error: OnceLock<BodyCut>,
    /// A hook set earlier on the same body.
    inner: Option<Arc<SendProgress>>,
    hook: Option<CompletionHook>,
}

/// The first bytes that the connection took.
struct FirstTaken {
    at: Instant,
    bytes: u64,
}

impl SendProgress {
    pub(super) fn new(
        expected: u64,
        timed: bool,
        inner: Option<Arc<SendProgress>>,
        hook: CompletionHook,
    ) -> SendProgress {
        SendProgress {
            expected: AtomicU64::new(expected),
            sent: AtomicU64::new(0),
            timed,
            first_taken: OnceLock::new(),
            error: OnceLock::new(),
            inner,
            hook: Some(hook),
        }
    }

    pub(super) fn note_sent(&self, count: u64) {
        if self.timed && count > 0 {
            let at_first = || FirstTaken {
                at: Instant::now(),
                bytes: count,
            };
            self.first_taken.get_or_init(at_first);
        }
        self.sent.fetch_add(count, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.note_sent(count);
        }
    }

    /// Records that no body has to be sent.
    pub(super) fn expect_nothing(&self) {
        self.expect_bytes(0);
    }

    /// Records that the body has `total` bytes.
    pub(super) fn expect_bytes(&self, total: u64) {
        self.expected.store(total, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.expect_bytes(total);
        }
    }

    pub(super) fn note_failure(&self, cut: &BodyCut) {
        // Only the first error counts; a body fails once.
        let _ = self.error.set(cut.clone());
        if let Some(inner) = &self.inner {
            inner.note_failure(cut);
        }
    }
}

impl Drop for SendProgress {
    fn drop(&mut self) {
        let bytes = *self.sent.get_mut();
        let complete = bytes == *self.expected.get_mut();
        let first = self.first_taken.get();
        // Most bodies are taken in one write: the time of the first byte is then also the time of
        // the last.
        let only = first.filter(|first| complete && first.bytes == bytes);
        let finished = || only.map_or_else(Instant::now, |only| only.at);
        let end = BodyCompletion {
            bytes,
            complete,
            first_byte: first.map(|first| first.at),
            finished: self.timed.then(finished),
            error: self.error.take(),
        };
        if let Some(hook) = self.hook.take() {
            hook(&end);
        }
    }
}

impl fmt::Debug for SendProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendProgress({:?} of {:?})", self.sent, self.expected)
    }
}
