//! What became of a body: how many bytes left, when the first did, and whether all did.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::Cut;

/// How a body ended.
#[derive(Debug, Clone)]
pub struct End {
    /// Bytes taken by the connection (handed to the kernel, or to TLS).
    pub bytes: u64,
    /// All bytes that the body promised were taken.
    pub complete: bool,
    /// When the first byte was taken, if any was and it was to be timed.
    pub first_byte: Option<Instant>,
    /// Why the source failed, if it did; an incomplete body without an error means that the client
    /// went away or was cut.
    pub error: Option<Cut>,
}

type Hook = Box<dyn FnOnce(&End) + Send + Sync>;

/// Shared by a body and the chunks it has given out; the last one to go tells the hook.
pub(super) struct Progress {
    expected: AtomicU64,
    sent: AtomicU64,
    /// Whether anybody wants to know of the first byte: to read the clock costs something.
    timed: bool,
    first_byte: OnceLock<Instant>,
    error: OnceLock<Cut>,
    /// A hook set earlier on the same body.
    inner: Option<Arc<Progress>>,
    hook: Option<Hook>,
}

impl Progress {
    pub(super) fn new(
        expected: u64,
        timed: bool,
        inner: Option<Arc<Progress>>,
        hook: Hook,
    ) -> Progress {
        Progress {
            expected: AtomicU64::new(expected),
            sent: AtomicU64::new(0),
            timed,
            first_byte: OnceLock::new(),
            error: OnceLock::new(),
            inner,
            hook: Some(hook),
        }
    }

    pub(super) fn sent(&self, count: u64) {
        if self.timed && count > 0 {
            self.first_byte.get_or_init(Instant::now);
        }
        self.sent.fetch_add(count, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.sent(count);
        }
    }

    /// No bytes are expected after all.
    pub(super) fn waive(&self) {
        self.expect(0);
    }

    /// So many bytes are all there are.
    pub(super) fn expect(&self, total: u64) {
        self.expected.store(total, Ordering::Relaxed);
        if let Some(inner) = &self.inner {
            inner.expect(total);
        }
    }

    pub(super) fn fail(&self, cut: &Cut) {
        // Only the first reason counts; a body fails once.
        let _ = self.error.set(cut.clone());
        if let Some(inner) = &self.inner {
            inner.fail(cut);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let bytes = *self.sent.get_mut();
        let end = End {
            bytes,
            complete: bytes == *self.expected.get_mut(),
            first_byte: self.first_byte.get().copied(),
            error: self.error.take(),
        };
        if let Some(hook) = self.hook.take() {
            hook(&end);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Progress({:?} of {:?})", self.sent, self.expected)
    }
}
