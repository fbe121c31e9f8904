//! Whole objects on disk, behind those in memory.
//!
//! A file each, which says in full what it is, with checksums of that and of the body; it is
//! written under another name and renamed, so that a process may be killed at any moment. What was
//! written before the last start is read once and checked before it is used for the first time:
//! the machine may have stopped, too. The files are known from an index in memory, which is read
//! from them at the start, in the background; it decides who stays, by the same policy as in
//! memory, and removes who goes. A folder belongs to one process.

mod file;
mod format;
mod index;
mod queue;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{FlockOperation, flock};
use twox_hash::XxHash3_64;

pub use self::file::{ShelvedBody, Shelving};
use self::file::{Unread, begin, each, shelved, write};
use self::format::Header;
use self::index::{Index, Shelved};
use self::queue::Queue;
use crate::identity::Identity;
use crate::local::LocalFile;
use crate::meter::Meter;

const SUFFIX: &str = "object";
const PART: &str = "part";
const LOCK: &str = "lock";

/// Objects on disk. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct DiskTier {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    index: Index,
    queue: Queue,
    meter: Arc<Meter>,
    counts: [AtomicU64; 3],
    /// Held as long as the folder is ours.
    _lock: File,
}

/// An object that was kept.
#[derive(Debug)]
pub struct Found {
    /// What was kept with it.
    pub head: Vec<u8>,
    /// The file, and where in it the body lies.
    pub file: Arc<LocalFile>,
    /// Within the file.
    pub body: Range<u64>,
}

/// What became of objects so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskTierCounts {
    /// Written.
    pub written: u64,
    /// Not written: too many waited already, or the disk would not.
    pub dropped: u64,
    /// Found damaged, and removed.
    pub broken: u64,
}

const WRITTEN: usize = 0;
const DROPPED: usize = 1;
const BROKEN: usize = 2;

impl DiskTier {
    /// Opens a folder, made where it is not there (for this user only), and starts to read what is
    /// in it; keeps at most about `bytes_max`, and in memory at most `waiting_bytes_max` that wait
    /// to be written.
    ///
    /// # Errors
    /// When it cannot be made, or belongs to another process.
    pub fn open(folder: &Path, bytes_max: u64, waiting_bytes_max: u64) -> io::Result<DiskTier> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let what = format!("another process keeps its objects there ({error})");
            io::Error::new(io::ErrorKind::AddrInUse, what)
        })?;
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            index: Index::new(folder, bytes_max),
            queue: Queue::new(waiting_bytes_max),
            meter: Arc::default(),
            counts: Default::default(),
            _lock: lock,
        });
        let works = shared.clone();
        let builder = std::thread::Builder::new().name("disk".into());
        let writer = builder.spawn(move || {
            works.scan();
            while let Some(job) = works.queue.next() {
                works.write(&job);
                works.queue.done();
            }
        })?;
        Ok(DiskTier {
            shared,
            writer: Arc::new(Mutex::new(Some(writer))),
        })
    }

    /// Keeps an object, soon, in place of what was kept under its key. False: too much waits
    /// already.
    pub fn put(&self, object: Shelving) -> bool {
        let taken = self.shared.queue.push(object);
        if !taken {
            self.shared.count(DROPPED);
        }
        taken
    }

    /// Whether it is there, or about to be.
    pub fn has(&self, key: &str) -> bool {
        self.shared.index.has(hash(key), key) || self.shared.queue.has(key)
    }

    /// Whether it can be had at once.
    pub fn is_written(&self, key: &str) -> bool {
        self.shared.index.has(hash(key), key)
    }

    /// What is kept under a key, checked. Blocks.
    pub fn get(&self, key: &str) -> Option<Found> {
        let shared = &self.shared;
        let shelved = shared.index.get(hash(key), key)?;
        let found = shared.read(key, &shelved);
        if found.as_ref().is_err_and(|why| *why == Unread::Broken) {
            shared.count(BROKEN);
            shared.index.remove(hash(key), key);
        }
        found.ok()
    }

    /// Forgets one object, also one that is about to be written.
    pub fn remove(&self, key: &str) {
        self.shared.queue.doom(|job| job.key == key);
        self.shared.index.remove(hash(key), key);
    }

    /// Forgets all objects that `which` names by key and tags. Returns how many there were.
    pub fn purge(&self, which: impl Fn(&str, &str) -> bool) -> usize {
        let waiting = self.shared.queue.doom(|job| which(&job.key, &job.tags));
        waiting + self.shared.index.purge(which)
    }

    /// Bytes that all files take.
    pub fn bytes(&self) -> u64 {
        self.shared.index.bytes()
    }

    /// Objects kept.
    pub fn len(&self) -> usize {
        self.shared.index.len()
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Objects that wait to be written.
    pub fn waiting(&self) -> usize {
        self.shared.queue.len()
    }

    /// What became of objects so far.
    pub fn counts(&self) -> DiskTierCounts {
        let [written, dropped, broken] = &self.shared.counts;
        DiskTierCounts {
            written: written.load(Relaxed),
            dropped: dropped.load(Relaxed),
            broken: broken.load(Relaxed),
        }
    }

    /// Writes what waits, and then `rest`, and takes no more. Blocks until that is done.
    pub fn close(&self, rest: impl IntoIterator<Item = Shelving>) {
        self.shared.queue.close();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
            // A writer that panicked has written what it could.
            let _ = writer.join();
            for object in rest {
                self.shared.write(&queue::Job::new(object));
            }
        }
    }
}

impl Shared {
    fn count(&self, which: usize) {
        if let Some(count) = self.counts.get(which) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Reads the heads of all files into the index; removes what is none of them.
    fn scan(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let suffix = path.extension().and_then(|suffix| suffix.to_str());
            match suffix {
                Some(SUFFIX) => {
                    let known = shelved(&path).map(|(key, shelved)| {
                        let right = Some(file_name(hash(&key)).as_str()) == name;
                        // What was written since the start is newer.
                        right && (self.index.has(hash(&key), &key) || self.index.add(&key, shelved))
                    });
                    // What cannot be looked at now is left for the next start.
                    let useless = matches!(known, Ok(false) | Err(Unread::Broken));
                    if useless && fs::remove_file(&path).is_ok() {
                        self.count(BROKEN);
                    }
                }
                // A process that was killed left it half-written.
                Some(PART) => drop(fs::remove_file(&path)),
                // Nothing of ours: left alone.
                _ => {}
            }
        }
    }

    fn write(&self, job: &queue::Job) {
        if job.is_doomed() {
            return;
        }
        let object = &job.object;
        let path = self.folder.join(file_name(hash(&object.key)));
        let part = path.with_extension(PART);
        match write(&part, object).and_then(|len| fs::rename(&part, &path).map(|()| len)) {
            Ok(len) => {
                let shelved = Shelved::new(&object.key, &object.tags, len, true);
                if self.index.add(&object.key, shelved) {
                    self.count(WRITTEN);
                }
                // Whoever dooms it now finds it in the index.
                if job.is_doomed() {
                    self.index.remove(hash(&object.key), &object.key);
                }
            }
            Err(_) => {
                // It may never have been made.
                let _ = fs::remove_file(&part);
                self.count(DROPPED);
            }
        }
    }

    /// Opens an object's file, and checks it, its body only the first time.
    fn read(&self, key: &str, shelved: &Shelved) -> Result<Found, Unread> {
        let file = File::open(self.folder.join(file_name(hash(key))))?;
        let identity = Identity::of(&rustix::fs::fstat(&file).map_err(io::Error::from)?);
        let bytes = begin(&file)?;
        let header = Header::read(&bytes).ok_or(Unread::Broken)?;
        let start = bytes.len() as u64;
        let body = start..start.saturating_add(header.body_len);
        if header.key != key || body.end != identity.len {
            return Err(Unread::Broken);
        }
        let (head, body_sum) = (header.head.to_vec(), header.body_sum);
        let file = Arc::new(LocalFile::new(file, identity, self.meter.clone()));
        if !shelved.is_checked() {
            let mut summed = XxHash3_64::new();
            each(&file, &body, |bytes| {
                std::hash::Hasher::write(&mut summed, bytes);
                Ok(())
            })?;
            if std::hash::Hasher::finish(&summed) != body_sum {
                return Err(Unread::Broken);
            }
            shelved.check();
        }
        Ok(Found { head, file, body })
    }
}

fn hash(key: &str) -> u64 {
    XxHash3_64::oneshot(key.as_bytes())
}

fn file_name(hash: u64) -> String {
    format!("{hash:016x}.{SUFFIX}")
}
