//! Stores complete objects on disk, as a second tier behind the objects in memory.
//!
//! Each file contains one object with its key, its metadata, and checksums of header and body. A
//! file is written under a temporary name and then renamed, so that a killed process leaves no
//! incomplete object. A file of an earlier run is checked before its first use, because a crash of
//! the machine may have damaged the file. At startup, a background task builds the in-memory index
//! from the files. Removals during this scan also affect files that the scan reads later. The index
//! has the same eviction policy as the memory cache. A folder belongs to one process at a time.
//!
//! Keys whose first lines are equal form a group, and can be removed together.

mod file_name;
mod format;
mod index;
mod object_file;
mod queue;
mod scan_removals;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{FlockOperation, flock};
use twox_hash::XxHash3_64;

use self::file_name::{SUFFIX, file_name, hash_key};
use self::format::TierFileHeader;
use self::index::{TierEntry, TierIndex};
pub use self::object_file::{ObjectToStore, TierBodySource};
use self::object_file::{
    TierFileError, for_each_block, read_header_bytes, read_index_entry, write_object_file,
};
use self::queue::WriteQueue;
use self::scan_removals::{PurgeSelector, ScanRemovals, key_group};
use crate::local_file::LocalFile;
use crate::object_version::ObjectVersion;
use crate::planted_bugs::is_bug_planted;
use crate::storage_meter::Meter;

const PART: &str = "part";
const LOCK: &str = "lock";

/// The disk tier. Clones are cheap and share the tier.
#[derive(Debug, Clone)]
pub struct DiskTier {
    shared: Arc<TierState>,
    writer: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Debug)]
struct TierState {
    folder: PathBuf,
    index: TierIndex,
    queue: WriteQueue,
    meter: Arc<Meter>,
    counts: [AtomicU64; 3],
    /// The removals that arrived during the scan. `None` after the scan, because the index is then
    /// complete.
    removals: Mutex<Option<ScanRemovals>>,
    /// The lock file, which is locked while this process owns the folder.
    lock: Mutex<Option<File>>,
}

/// An object that was found on disk.
#[derive(Debug)]
pub struct TierHit {
    /// The metadata that was stored with the object.
    pub head: Vec<u8>,
    /// The file.
    pub file: Arc<LocalFile>,
    /// The range of the body within the file.
    pub body: Range<u64>,
}

/// Counts of written objects, dropped objects and removed files since the tier was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskTierCounts {
    /// Objects that were written.
    pub written: u64,
    /// Objects that were not written, because the queue was full or closed, or because the write
    /// failed.
    pub dropped: u64,
    /// Damaged, misnamed or outdated files that were removed.
    pub broken: u64,
}

const WRITTEN: usize = 0;
const DROPPED: usize = 1;
const BROKEN: usize = 2;

impl DiskTier {
    /// Opens the tier in `folder`, and starts to read the headers of the files. Removes the files of
    /// the keys for which `outdated` returns `true`. If the folder does not exist, creates it with
    /// access for this user only. The files take at most about `bytes_max` bytes on disk. Queued
    /// objects take at most about `waiting_bytes_max` bytes of memory.
    ///
    /// # Errors
    /// If the folder cannot be created. The error is `AddrInUse` if the folder belongs to another
    /// process.
    pub fn open_and_remove_outdated(
        folder: &Path,
        bytes_max: u64,
        waiting_bytes_max: u64,
        outdated: impl Fn(&str) -> bool + Send + 'static,
    ) -> io::Result<DiskTier> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let what = format!("another process uses this folder: {error}");
            io::Error::new(io::ErrorKind::AddrInUse, what)
        })?;
        let shared = Arc::new(TierState {
            folder: folder.to_owned(),
            index: TierIndex::new(folder, bytes_max),
            queue: WriteQueue::new(waiting_bytes_max),
            meter: Arc::default(),
            counts: Default::default(),
            removals: Mutex::new(Some(ScanRemovals::default())),
            lock: Mutex::new(Some(lock)),
        });
        let works = shared.clone();
        let builder = std::thread::Builder::new().name("disk".into());
        let writer = builder.spawn(move || {
            works.scan_folder(outdated);
            *works.lock_removals() = None;
            while let Some(job) = works.queue.next_job() {
                works.write_object(&job);
                works.queue.finish_job();
            }
        })?;
        Ok(DiskTier {
            shared,
            writer: Arc::new(Mutex::new(Some(writer))),
        })
    }

    /// Stores an object in the background, in place of any other object with the same key. Returns
    /// `false` if the queue is full or closed.
    pub fn put(&self, object: ObjectToStore) -> bool {
        let taken = self.shared.queue.enqueue_object(object);
        if !taken {
            self.shared.count_event(DROPPED);
        }
        taken
    }

    /// Returns whether an object is stored or queued.
    pub fn has(&self, key: &str) -> bool {
        self.shared.index.has(hash_key(key), key) || self.shared.queue.has(key)
    }

    /// Returns whether an object is stored on disk. Queued objects are not considered.
    pub fn is_written(&self, key: &str) -> bool {
        self.shared.index.has(hash_key(key), key)
    }

    /// Opens and checks an object. Removes the object if its file is damaged. Blocks.
    pub fn get(&self, key: &str) -> Option<TierHit> {
        let shared = &self.shared;
        let shelved = shared.index.get(hash_key(key), key)?;
        let found = shared.read_object(key, &shelved);
        if found
            .as_ref()
            .is_err_and(|why| *why == TierFileError::Broken)
        {
            shared.count_event(BROKEN);
            shared.index.remove(hash_key(key), key);
        }
        found.ok()
    }

    /// Returns whether the tier still reads the headers of the files that were in its folder. Until
    /// then, [`DiskTier::has`] may miss objects on disk.
    pub fn is_scanning(&self) -> bool {
        self.shared.lock_removals().is_some()
    }

    /// Removes one object from the disk and from the queue.
    pub fn remove(&self, key: &str) {
        // Notes the removal first. The scan then either sees the note, or has already added the
        // file to the index.
        if let Some(removals) = &mut *self.shared.lock_removals() {
            removals.note_key(key);
        }
        self.shared.queue.mark_key_purged(key);
        self.shared.index.remove(hash_key(key), key);
    }

    /// Removes all objects whose key is `group`, or is `group` followed by a line break and further
    /// text. Returns the number of removed objects, like [`DiskTier::purge`]. During the scan, a
    /// group takes less memory than a purge, and many more groups than purges can be removed.
    pub fn remove_group(&self, group: &str) -> usize {
        // Notes the removal first, like [`DiskTier::remove`].
        if let Some(removals) = &mut *self.shared.lock_removals() {
            removals.note_group(group);
        }
        self.shared.purge_present(|key, _| key_group(key) == group)
    }

    /// Removes all objects that `which` selects by key and tags. Returns the number of removed
    /// objects. The number does not include files that the scan removes later. `which` must not
    /// call the tier.
    pub fn purge(&self, which: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> usize {
        let which: PurgeSelector = Arc::new(which);
        // Notes the purge first, like [`DiskTier::remove`].
        if let Some(removals) = &mut *self.shared.lock_removals() {
            removals.note_purge(which.clone());
        }
        self.shared.purge_present(|key, tags| which(key, tags))
    }

    /// The total size of all files in bytes, where each file takes whole disk blocks.
    pub fn stored_bytes(&self) -> u64 {
        self.shared.index.stored_bytes()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.index.len()
    }

    /// Returns whether the tier is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of objects that are queued or are being written.
    pub fn unwritten_count(&self) -> usize {
        self.shared.queue.len()
    }

    /// Returns the counts since the tier was opened.
    pub fn counts(&self) -> DiskTierCounts {
        let [written, dropped, broken] = &self.shared.counts;
        DiskTierCounts {
            written: written.load(Relaxed),
            dropped: dropped.load(Relaxed),
            broken: broken.load(Relaxed),
        }
    }

    /// Closes the tier as [`DiskTier::close`] does, and lets another process open the folder. This
    /// process can still remove objects.
    pub fn close_and_unlock(&self, rest: impl IntoIterator<Item = ObjectToStore>) {
        self.close(rest);
        self.shared.unlock_folder();
    }

    /// Writes the queued objects and then `rest`. Accepts no further objects. Blocks until all
    /// objects are written. Until then, removals and purges also affect the objects of `rest`.
    pub fn close(&self, rest: impl IntoIterator<Item = ObjectToStore>) {
        self.shared.queue.append_and_close(rest);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
            // Ignores the error, which means that the writer thread panicked.
            let _ = writer.join();
        }
    }
}

impl TierState {
    /// Lets another process open the folder.
    fn unlock_folder(&self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn lock_removals(&self) -> MutexGuard<'_, Option<ScanRemovals>> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the selected objects from the queue and from the index. Returns their number.
    fn purge_present(&self, which: impl Fn(&str, &str) -> bool) -> usize {
        let waiting = self.queue.mark_purged(|job| which(&job.key, &job.tags));
        waiting + self.index.purge(which)
    }

    fn count_event(&self, which: usize) {
        if let Some(count) = self.counts.get(which) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Adds the entries of all files to the index. Removes damaged, misnamed and outdated files, and
    /// the files of objects that are removed during the scan.
    fn scan_folder(&self, outdated: impl Fn(&str) -> bool) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let suffix = path.extension().and_then(|suffix| suffix.to_str());
            match suffix {
                Some(SUFFIX) => {
                    let known = read_index_entry(&path).map(|(key, shelved)| {
                        let is_outdated = outdated(&key);
                        let right = Some(file_name(hash_key(&key)).as_str()) == name;
                        right && self.index_scanned_file(&key, shelved, is_outdated)
                    });
                    // Keeps a file that the system cannot open now. The next start reads this file.
                    let useless = matches!(known, Ok(false) | Err(TierFileError::Broken));
                    if useless && fs::remove_file(&path).is_ok() {
                        self.count_event(BROKEN);
                    }
                }
                // Removes the partial file of a process that was killed.
                Some(PART) => drop(fs::remove_file(&path)),
                // Does not touch files of other programs.
                _ => {}
            }
        }
    }

    /// Adds a file to the index. Returns `false` if the file must be removed.
    fn index_scanned_file(&self, key: &str, shelved: TierEntry, is_outdated: bool) -> bool {
        // Holds the lock until the file is in the index, so that each removal is either noted or
        // finds the file in the index.
        let removals = self.lock_removals();
        let is_removed = |noted: &ScanRemovals| noted.is_removed(key, shelved.tags());
        if removals.as_ref().is_some_and(is_removed) {
            return false;
        }
        // Keeps a file that is already in the index, even if its key is outdated.
        self.index.has(hash_key(key), key) || (!is_outdated && self.index.add(key, shelved))
    }

    fn write_object(&self, job: &queue::WriteJob) {
        if job.is_purged() {
            return;
        }
        let object = &job.object;
        let path = self.folder.join(file_name(hash_key(&object.key)));
        let part = path.with_extension(PART);
        match write_object_file(&part, object)
            .and_then(|len| fs::rename(&part, &path).map(|()| len))
        {
            Ok(len) => {
                let shelved = TierEntry::new(&object.key, &object.tags, len, true);
                if self.index.add(&object.key, shelved) {
                    self.count_event(WRITTEN);
                }
                // A purge during the write only marked the job, so the object is removed here. A
                // later purge finds the object in the index.
                if job.is_purged() {
                    self.index.remove(hash_key(&object.key), &object.key);
                }
            }
            Err(_) => {
                // Ignores the error, because the file may not exist.
                let _ = fs::remove_file(&part);
                self.count_event(DROPPED);
            }
        }
    }

    /// Opens an object's file and checks the header. Checks the body only if this process has not
    /// checked or written the body before.
    fn read_object(&self, key: &str, shelved: &TierEntry) -> Result<TierHit, TierFileError> {
        let file = File::open(self.folder.join(file_name(hash_key(key))))?;
        let identity =
            ObjectVersion::from_stat(&rustix::fs::fstat(&file).map_err(io::Error::from)?);
        let bytes = read_header_bytes(&file)?;
        let header = TierFileHeader::decode_header(&bytes).ok_or(TierFileError::Broken)?;
        let start = bytes.len() as u64;
        let body = start..start.saturating_add(header.body_len);
        if header.key != key || body.end != identity.len {
            return Err(TierFileError::Broken);
        }
        let (head, body_sum) = (header.head.to_vec(), header.body_sum);
        let file = Arc::new(LocalFile::new(file, identity, self.meter.clone()));
        if !shelved.is_checked() {
            let mut summed = XxHash3_64::new();
            for_each_block(&file, &body, |bytes| {
                std::hash::Hasher::write(&mut summed, bytes);
                Ok(())
            })?;
            let is_sound = std::hash::Hasher::finish(&summed) == body_sum;
            if !is_sound && !is_bug_planted("disk-sum-ignored") {
                return Err(TierFileError::Broken);
            }
            shelved.mark_checked();
        }
        Ok(TierHit { head, file, body })
    }
}
