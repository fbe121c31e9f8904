//! A disk tier that a process hands over to its successor.
//!
//! Only one process at a time may use the tier's folder. The successor starts without the tier. It
//! opens the tier when the predecessor has written its objects and released the folder, or has
//! exited. If the successor removes an entry before the tier is open, the entry is still on disk
//! and would be found later. Therefore the keys or URLs of such entries are noted, and the entries
//! are removed when the tier opens. Later removals are noted by the tier itself, while it reads its
//! folder.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use store::{DiskTier, ObjectToStore};

use crate::cache_key::primary_key;

/// Maximum total size of the objects that wait to be written, in bytes. A single larger object is
/// allowed.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of noted keys and URLs together. They take at most about 1.2 MB of memory. If
/// there are more of them, the tier starts empty.
const REMOVED_HASHES_MAX: usize = 65_536;

/// A disk tier that may be opened later. Cheap to clone; all clones refer to the same tier.
#[derive(Clone)]
pub struct DeferredTier(Arc<DeferredState>);

struct DeferredState {
    /// Folder and maximum size in bytes, if a tier is configured.
    place: Option<(PathBuf, u64)>,
    tier: OnceLock<DiskTier>,
    /// Whether this process has released the folder, so that a successor may open it.
    released: AtomicBool,
    removed: Mutex<RemovedEntries>,
}

/// Entries that were removed before the tier was open. Another key or URL with a noted hash only
/// causes the removal of more entries than necessary.
#[derive(Debug, Clone, Default)]
struct RemovedEntries {
    hasher: RandomState,
    key_hashes: HashSet<u64>,
    /// The hashes of the URLs whose entries were all removed.
    url_hashes: HashSet<u64>,
    all: bool,
}

impl RemovedEntries {
    fn contains_key(&self, key: &str) -> bool {
        self.all
            || self.key_hashes.contains(&self.hasher.hash_one(key))
            || self
                .url_hashes
                .contains(&self.hasher.hash_one(primary_key(key)))
    }

    fn limit_memory(&mut self) {
        if self.key_hashes.len() + self.url_hashes.len() > REMOVED_HASHES_MAX {
            *self = RemovedEntries {
                all: true,
                ..RemovedEntries::default()
            };
        }
    }
}

impl DeferredTier {
    pub fn new(place: Option<(PathBuf, u64)>) -> DeferredTier {
        DeferredTier(Arc::new(DeferredState {
            place,
            tier: OnceLock::new(),
            released: AtomicBool::new(false),
            removed: Mutex::default(),
        }))
    }

    #[cfg(test)]
    pub fn from_open_tier(tier: DiskTier) -> DeferredTier {
        let deferred = DeferredTier::new(None);
        let is_set = deferred.0.tier.set(tier).is_ok();
        assert!(is_set, "a new tier is not open");
        deferred
    }

    /// Returns the tier if it is open and has not been released.
    pub fn get_if_open(&self) -> Option<&DiskTier> {
        let tier = self.0.tier.get();
        tier.filter(|_| !self.0.released.load(Ordering::Acquire))
    }

    /// Returns the tier for removals, even if the tier has been released. Entries must also be
    /// removed while a successor uses the folder.
    pub fn get_even_if_released(&self) -> Option<&DiskTier> {
        self.0.tier.get()
    }

    /// Writes the queued objects and `rest`, and releases the folder for a successor process.
    /// Blocks the thread.
    pub fn flush_and_release(&self, rest: impl IntoIterator<Item = ObjectToStore>) {
        if let Some(tier) = self.get_if_open() {
            self.0.released.store(true, Ordering::Release);
            tier.close_and_unlock(rest);
        }
    }

    /// Returns whether the tier is configured and has not been opened yet.
    pub fn is_unopened(&self) -> bool {
        self.0.place.is_some() && self.0.tier.get().is_none()
    }

    /// Opens the tier. Returns true if this call opened the tier, or if no tier is configured.
    ///
    /// # Errors
    /// When the folder is unavailable. The error is `AddrInUse` if another process uses the folder.
    pub fn try_open_tier(&self) -> io::Result<bool> {
        let Some((folder, bytes_max)) = &self.0.place else {
            return Ok(true);
        };
        // `note_removed` waits for this lock. Otherwise, a key that is noted after the notes are
        // copied, but before the tier is open, would be lost.
        let mut removed = self.lock_removed();
        let noted = removed.clone();
        let outdated = move |key: &str| noted.contains_key(key);
        let tier =
            DiskTier::open_and_remove_outdated(folder, *bytes_max, WAITING_BYTES_MAX, outdated)?;
        *removed = RemovedEntries::default();
        Ok(self.0.tier.set(tier).is_ok())
    }

    pub fn note_removed(&self, key: &str) {
        self.note(|removed| {
            removed.key_hashes.insert(removed.hasher.hash_one(key));
        });
    }

    /// Notes the removal of all entries of a URL.
    pub fn note_removed_url(&self, url: &str) {
        self.note(|removed| {
            removed.url_hashes.insert(removed.hasher.hash_one(url));
        });
    }

    pub fn note_purge(&self) {
        self.note(|removed| removed.all = true);
    }

    /// Calls `add`, unless the tier is open or not configured, or all entries are removed anyway.
    fn note(&self, add: impl FnOnce(&mut RemovedEntries)) {
        if self.is_unopened() {
            let mut removed = self.lock_removed();
            // The tier may have opened before the lock was acquired.
            if self.is_unopened() && !removed.all {
                add(&mut removed);
                removed.limit_memory();
            }
        }
    }

    /// Returns the folder's path as text for log and error messages.
    pub fn folder_text(&self) -> String {
        let folder = self.0.place.as_ref().map(|(folder, _)| folder);
        folder.map_or_else(String::new, |folder| folder.display().to_string())
    }

    fn lock_removed(&self) -> MutexGuard<'_, RemovedEntries> {
        self.0
            .removed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{ObjectToStore, TierBodySource};

    fn put(tier: &DeferredTier, key: &str) {
        let object = ObjectToStore {
            key: key.to_owned(),
            tags: String::new(),
            head: Vec::new(),
            body: TierBodySource::Memory(Vec::new()),
        };
        tier.get_if_open().unwrap().put(object);
    }

    /// Closes the tier and returns the number of its entries. Closing waits until the tier has read
    /// its folder, so the number is final.
    fn close(tier: &DeferredTier) -> usize {
        let tier = tier.get_if_open().unwrap();
        tier.close([]);
        tier.len()
    }

    fn open_two(folder: &tempfile::TempDir) -> (DeferredTier, DeferredTier) {
        let place = Some((folder.path().to_owned(), 1 << 30));
        let (old, new) = (DeferredTier::new(place.clone()), DeferredTier::new(place));
        old.try_open_tier().unwrap();
        ["a", "b", "c"].into_iter().for_each(|key| put(&old, key));
        let error = new.try_open_tier().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(new.is_unopened());
        (old, new)
    }

    #[test]
    fn a_successor_opens_the_tier_without_the_keys_removed_before() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = open_two(&folder);
        new.note_removed("b");
        assert_eq!(close(&old), 3);
        drop(old);
        assert!(new.try_open_tier().unwrap());
        assert_eq!(close(&new), 2);
        assert!(!new.get_if_open().unwrap().has("b"));
    }

    #[test]
    fn a_successor_opens_a_released_tier_while_the_old_process_drains() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = open_two(&folder);
        let late = ObjectToStore {
            key: "d".to_owned(),
            tags: String::new(),
            head: Vec::new(),
            body: TierBodySource::Memory(Vec::new()),
        };
        old.flush_and_release([late]);
        assert!(
            old.get_if_open().is_none(),
            "the old process neither reads nor writes"
        );
        assert!(new.try_open_tier().unwrap());
        // An entry that the old process removes after the release must not be served again.
        old.get_even_if_released().unwrap().remove("b");
        close(&new);
        let found = ["a", "b", "d"].map(|key| new.get_if_open().unwrap().get(key).is_some());
        assert_eq!(found, [true, false, true]);
    }

    /// Regression: the invalidation of one URL removed all entries.
    #[test]
    fn a_url_removed_before_the_tier_opens_takes_no_other_entries_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = open_two(&folder);
        ["b\nvariant", "bb"]
            .into_iter()
            .for_each(|key| put(&old, key));
        new.note_removed_url("b");
        assert_eq!(close(&old), 5);
        drop(old);
        assert!(new.try_open_tier().unwrap());
        assert_eq!(close(&new), 3);
        let found = ["a", "b", "b\nvariant", "bb", "c"];
        let found = found.map(|key| new.get_if_open().unwrap().has(key));
        assert_eq!(found, [true, false, false, true, true]);
    }

    #[test]
    fn too_many_removals_before_the_tier_opens_remove_all() {
        let mut removed = RemovedEntries::default();
        removed.key_hashes.extend(1..REMOVED_HASHES_MAX as u64);
        removed.url_hashes.insert(removed.hasher.hash_one("a"));
        removed.limit_memory();
        assert!(removed.contains_key("a\nvariant") && !removed.contains_key("b"));
        removed.url_hashes.insert(1);
        removed.limit_memory();
        assert!(removed.contains_key("b") && removed.key_hashes.is_empty());
    }

    #[test]
    fn a_purge_before_the_tier_opens_removes_all() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = open_two(&folder);
        new.note_purge();
        close(&old);
        drop(old);
        assert!(new.try_open_tier().unwrap());
        assert_eq!(close(&new), 0);
    }
}
