//! The queue of objects to write. The total size of the queued objects is limited.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::ObjectToStore;
use super::file_name::hash_key;

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
    /// The waiting and the current objects by the hash of their key. Each request may look for a
    /// key, and the queue may contain more than 100,000 objects.
    jobs_by_hash: HashMap<u64, Vec<Arc<WriteJob>>>,
    bytes: u64,
    closed: bool,
}

/// An object to write, unless it is purged first.
#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) object: ObjectToStore,
    doomed: AtomicBool,
}

impl WriteJob {
    pub(super) fn new(object: ObjectToStore) -> WriteJob {
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
fn queued_bytes(object: &ObjectToStore) -> u64 {
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
    pub(super) fn enqueue_object(&self, object: ObjectToStore) -> bool {
        let mut inner = self.lock();
        let bytes = inner.bytes.saturating_add(queued_bytes(&object));
        if inner.closed || (bytes > self.bytes_max && !inner.waiting.is_empty()) {
            return false;
        }
        inner.append_job(object);
        self.more.notify_one();
        true
    }

    /// Waits for the next object. Returns `None` when the queue is closed and empty.
    pub(super) fn next_job(&self) -> Option<Arc<WriteJob>> {
        let mut inner = self.lock();
        loop {
            if let Some(job) = inner.waiting.pop_front() {
                inner.bytes -= queued_bytes(&job.object);
                inner.replace_current(Some(job.clone()));
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
        self.lock().replace_current(None);
    }

    /// Adds the objects of `rest`, even if the queue is full, and closes the queue. Adds nothing if
    /// the queue is already closed.
    pub(super) fn append_and_close(&self, rest: impl IntoIterator<Item = ObjectToStore>) {
        // Collects the objects before the lock is held, because the iterator may use the queue.
        let rest: Vec<_> = rest.into_iter().collect();
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        for object in rest {
            inner.append_job(object);
        }
        inner.closed = true;
        self.more.notify_all();
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.lock().jobs_of_key(key).any(|job| !job.is_purged())
    }

    /// Marks the objects with this key as purged.
    pub(super) fn mark_key_purged(&self, key: &str) {
        for job in self.lock().jobs_of_key(key) {
            job.doomed.store(true, Ordering::Release);
        }
    }

    /// Marks as purged the objects that `which` selects. Returns the number of objects that were
    /// newly marked.
    pub(super) fn mark_purged(&self, which: impl Fn(&ObjectToStore) -> bool) -> usize {
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

impl WriteQueueState {
    fn append_job(&mut self, object: ObjectToStore) {
        self.bytes = self.bytes.saturating_add(queued_bytes(&object));
        let hash = hash_key(&object.key);
        let job = Arc::new(WriteJob::new(object));
        self.jobs_by_hash.entry(hash).or_default().push(job.clone());
        self.waiting.push_back(job);
    }

    /// Sets the object that is being written, and forgets the previous one.
    fn replace_current(&mut self, job: Option<Arc<WriteJob>>) {
        let Some(finished) = std::mem::replace(&mut self.current, job) else {
            return;
        };
        let hash = hash_key(&finished.object.key);
        if let Some(jobs) = self.jobs_by_hash.get_mut(&hash) {
            jobs.retain(|job| !Arc::ptr_eq(job, &finished));
            if jobs.is_empty() {
                self.jobs_by_hash.remove(&hash);
            }
        }
    }

    fn jobs_of_key(&self, key: &str) -> impl Iterator<Item = &Arc<WriteJob>> {
        let jobs = self.jobs_by_hash.get(&hash_key(key)).into_iter().flatten();
        jobs.filter(move |job| job.object.key == key)
    }
}
