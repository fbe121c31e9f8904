//! Reports the completion of a body. A report contains the number of bytes sent, the times of the
//! first and the last byte, and whether all bytes were sent.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::BodyError;

/// The result of sending a body.
#[derive(Debug, Clone)]
pub struct BodyCompletion {
    /// Number of bytes that were written to the connection, that is, passed to the kernel or to
    /// TLS.
    pub bytes: u64,
    /// Whether the whole body was written.
    pub complete: bool,
    /// Time when the first byte was written. `None` if no byte was written, or if `Body::on_end`
    /// was called without `timed`.
    pub first_byte: Option<Instant>,
    /// Time when the last byte was written or, for an incomplete body, when the body was dropped.
    /// `None` if `Body::on_end` was called without `timed`.
    pub finished: Option<Instant>,
    /// The error of the body's source. If there is no error but the body is incomplete, the client
    /// disconnected or the server cut the connection.
    pub error: Option<BodyError>,
}

type CompletionHook = Box<dyn FnOnce(&BodyCompletion) + Send + Sync>;

/// Progress of sending, shared by a body and its chunks. The hook is called when the body and all
/// its chunks have been dropped.
pub(super) struct SendProgress {
    expected: AtomicU64,
    sent: AtomicU64,
    /// Whether to measure times. Times are optional, because reading the clock takes time.
    timed: bool,
    first_write: OnceLock<FirstWrite>,
    error: OnceLock<BodyError>,
    /// The progress that contains the previous hook of the same body.
    inner: Option<Arc<SendProgress>>,
    hook: Option<CompletionHook>,
}

/// The first write of the body's bytes to the connection.
struct FirstWrite {
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
            first_write: OnceLock::new(),
            error: OnceLock::new(),
            inner,
            hook: Some(hook),
        }
    }

    pub(super) fn note_sent(&self, count: u64) {
        if self.timed && count > 0 {
            let at_first = || FirstWrite {
                at: Instant::now(),
                bytes: count,
            };
            self.first_write.get_or_init(at_first);
        }
        self.sent.fetch_add(count, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.note_sent(count);
        }
    }

    /// Records that the body is complete without any bytes, as in the response to HEAD.
    pub(super) fn mark_bodiless(&self) {
        self.set_expected_bytes(0);
    }

    /// Records that the body has `total` bytes.
    pub(super) fn set_expected_bytes(&self, total: u64) {
        self.expected.store(total, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.set_expected_bytes(total);
        }
    }

    pub(super) fn note_failure(&self, cut: &BodyError) {
        // If an error is already stored, that error stays.
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
        let first = self.first_write.get();
        // Most bodies are sent in one write. The time of the first byte is then also the time of
        // the last byte.
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
