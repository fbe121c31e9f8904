//! What waits to be written, bounded by bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Shelving;

#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    more: Condvar,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Arc<Job>>,
    /// Being written.
    current: Option<Arc<Job>>,
    bytes: u64,
    closed: bool,
}

/// An object to be written, unless it is purged before.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) object: Shelving,
    doomed: AtomicBool,
}

impl Job {
    pub(super) fn new(object: Shelving) -> Job {
        Job {
            object,
            doomed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Acquire)
    }
}

impl Queue {
    pub(super) fn new(bytes_max: u64) -> Queue {
        Queue {
            inner: Mutex::default(),
            more: Condvar::new(),
            bytes_max,
        }
    }

    /// False: too much waits already. One object always finds room.
    pub(super) fn push(&self, object: Shelving) -> bool {
        let mut inner = self.lock();
        let bytes = inner.bytes.saturating_add(object.body.len());
        if inner.closed || (bytes > self.bytes_max && !inner.waiting.is_empty()) {
            return false;
        }
        inner.bytes = bytes;
        inner.waiting.push_back(Arc::new(Job::new(object)));
        self.more.notify_one();
        true
    }

    /// The next one to write; waits for it. `None`: there will be no more.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        let mut inner = self.lock();
        loop {
            if let Some(job) = inner.waiting.pop_front() {
                inner.bytes -= job.object.body.len();
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

    /// The one that was given last has been written.
    pub(super) fn done(&self) {
        self.lock().current = None;
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }

    pub(super) fn has(&self, key: &str) -> bool {
        let inner = self.lock();
        let mut all = inner.waiting.iter().chain(&inner.current);
        all.any(|job| job.object.key == key && !job.is_doomed())
    }

    /// Those must not be kept. Returns how many there were.
    pub(super) fn doom(&self, which: impl Fn(&Shelving) -> bool) -> usize {
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
