//! The queue of objects to write. The total size of the queued objects is limited.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::NewTierObject;

/// Approximate memory of a queued object in addition to its texts and its body, in bytes.
const JOB_BYTES: u64 = 512;

#[derive(Debug)]
pub(super) struct WriteQueue {
    inner: Mutex<WriteQueueState>,
    more: Condvar,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct WriteQueueState {
    waiting: VecDeque<Arc<WriteJob>>,
    /// The object that is being written.
    current: Option<Arc<WriteJob>>,
    bytes: u64,
    closed: bool,
}

/// An object to write, unless it is purged first.
#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) object: NewTierObject,
    doomed: AtomicBool,
}

impl WriteJob {
    pub(super) fn new(object: NewTierObject) -> WriteJob {
        WriteJob {
            object,
            doomed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_purged(&self) -> bool {
        self.doomed.load(Ordering::Acquire)
    }
}

/// Returns the size of a queued object. Without the texts, any number of objects with empty bodies
/// would fit into the queue.
fn queued_bytes(object: &NewTierObject) -> u64 {
    let texts = object.key.len() + object.tags.len() + object.head.len();
    (texts as u64)
        .saturating_add(JOB_BYTES)
        .saturating_add(object.body.len())
}

impl WriteQueue {
    pub(super) fn new(bytes_max: u64) -> WriteQueue {
        WriteQueue {
            inner: Mutex::default(),
            more: Condvar::new(),
            bytes_max,
        }
    }

    /// Adds an object. Returns `false` if the queue is full or closed. An empty queue accepts an
    /// object of any size.
    pub(super) fn enqueue_object(&self, object: NewTierObject) -> bool {
        let mut inner = self.lock();
        let bytes = inner.bytes.saturating_add(queued_bytes(&object));
        if inner.closed || (bytes > self.bytes_max && !inner.waiting.is_empty()) {
            return false;
        }
        inner.bytes = bytes;
        inner.waiting.push_back(Arc::new(WriteJob::new(object)));
        self.more.notify_one();
        true
    }

    /// Waits for the next object. Returns `None` when the queue is closed and empty.
    pub(super) fn next_job(&self) -> Option<Arc<WriteJob>> {
        let mut inner = self.lock();
        loop {
            if let Some(job) = inner.waiting.pop_front() {
                inner.bytes -= queued_bytes(&job.object);
                inner.current = Some(job.clone());
                return Some(job);
            }
            if inner.closed {
                return None;
            }
            inner = self
                .more
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that the writer has finished the job that [`WriteQueue::next_job`] returned last.
    pub(super) fn finish_job(&self) {
        self.lock().current = None;
    }

    /// Adds the objects of `rest`, even if the queue is full, and closes the queue. Adds nothing if
    /// the queue is already closed.
    pub(super) fn append_and_close(&self, rest: impl IntoIterator<Item = NewTierObject>) {
        // Collects the objects before the lock is held, because the iterator may use the queue.
        let rest: Vec<_> = rest.into_iter().collect();
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        for object in rest {
            inner.bytes = inner.bytes.saturating_add(queued_bytes(&object));
            inner.waiting.push_back(Arc::new(WriteJob::new(object)));
        }
        inner.closed = true;
        self.more.notify_all();
    }

    pub(super) fn has(&self, key: &str) -> bool {
        let inner = self.lock();
        let mut all = inner.waiting.iter().chain(&inner.current);
        all.any(|job| job.object.key == key && !job.is_purged())
    }

    /// Marks as purged the objects that `which` selects. Returns the number of objects that were
    /// newly marked.
    pub(super) fn mark_purged(&self, which: impl Fn(&NewTierObject) -> bool) -> usize {
        let inner = self.lock();
        let all = inner.waiting.iter().chain(&inner.current);
        let meant = all.filter(|job| which(&job.object));
        meant
            .filter(|job| !job.doomed.swap(true, Ordering::AcqRel))
            .count()
    }

    pub(super) fn len(&self) -> usize {
        let inner = self.lock();
        inner.waiting.len() + usize::from(inner.current.is_some())
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueueState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
