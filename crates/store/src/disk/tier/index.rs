//! The in-memory index of the objects on disk. The index also chooses the objects to evict.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};

use super::file_name::{file_name, hash_key};

/// The index entry of an object. It takes a few hundred bytes, mostly for the key.
#[derive(Debug)]
pub(super) struct TierEntry {
    key: Box<str>,
    tags: Box<str>,
    bytes: u64,
    /// Whether this process has written the body or has verified its checksum.
    checked: AtomicBool,
}

/// The index, which maps the hash of each object's key to the object's entry. The file name of an
/// object is derived from the same hash.
#[derive(Debug)]
pub(super) struct TierIndex {
    folder: PathBuf,
    cache: Cache<u64, Arc<TierEntry>, TierEntryWeigher, DefaultHashBuilder, UnlinkOnEviction>,
}

#[derive(Debug, Clone)]
struct TierEntryWeigher;

/// Removes the files of evicted entries.
#[derive(Debug, Clone)]
struct UnlinkOnEviction(PathBuf);

/// Size of a disk block in bytes. A file occupies whole blocks.
const DISK_BLOCK_BYTES: u64 = 4096;
/// Estimated size of an object in bytes. It is used for the initial allocation only.
const OBJECT_BYTES_LIKELY: u64 = 512 << 10;

impl Weighter<u64, Arc<TierEntry>> for TierEntryWeigher {
    fn weight(&self, _: &u64, shelved: &Arc<TierEntry>) -> u64 {
        shelved.bytes.next_multiple_of(DISK_BLOCK_BYTES)
    }
}

impl Lifecycle<u64, Arc<TierEntry>> for UnlinkOnEviction {
    type RequestState = ();

    // Removes the file here and not in `on_evict`, because `on_evict` is also called for replaced
    // entries. The file of the new entry has the same name as the file of the replaced entry.
    fn before_evict(&self, (): &mut (), hash: &u64, _: &mut Arc<TierEntry>) {
        // A reader that has opened the file can still read the whole file.
        let _ = fs::remove_file(self.0.join(file_name(*hash)));
    }
}

impl TierEntry {
    pub(super) fn new(key: &str, tags: &str, bytes: u64, checked: bool) -> TierEntry {
        TierEntry {
            key: key.into(),
            tags: tags.into(),
            bytes,
            checked: AtomicBool::new(checked),
        }
    }

    pub(super) fn tags(&self) -> &str {
        &self.tags
    }

    pub(super) fn is_checked(&self) -> bool {
        self.checked.load(Relaxed)
    }

    pub(super) fn mark_checked(&self) {
        self.checked.store(true, Relaxed);
    }
}

impl TierIndex {
    pub(super) fn new(folder: &Path, bytes_max: u64) -> TierIndex {
        let items = usize::try_from(bytes_max / OBJECT_BYTES_LIKELY).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(1)
            .weight_capacity(bytes_max)
            .estimated_items_capacity(items.clamp(64, 1 << 22))
            .build()
            .unwrap_or_else(|_| unreachable!("both capacities are set"));
        let unlink = UnlinkOnEviction(folder.to_owned());
        let hasher = DefaultHashBuilder::default();
        TierIndex {
            folder: folder.to_owned(),
            cache: Cache::with_options(options, TierEntryWeigher, hasher, unlink),
        }
    }

    /// Returns whether the object is stored. This check does not count as a use of the object.
    pub(super) fn has(&self, hash: u64, key: &str) -> bool {
        let found = self.cache.peek(&hash);
        found.is_some_and(|shelved| *shelved.key == *key)
    }

    /// Returns the entry and records the use.
    pub(super) fn get(&self, hash: u64, key: &str) -> Option<Arc<TierEntry>> {
        let found = self.cache.get(&hash)?;
        (*found.key == *key).then_some(found)
    }

    /// Adds the entry of a file. Returns `false` if the entry was evicted immediately. The eviction
    /// also removes the file.
    pub(super) fn add(&self, key: &str, shelved: TierEntry) -> bool {
        self.cache.insert(hash_key(key), Arc::new(shelved));
        self.has(hash_key(key), key)
    }

    pub(super) fn remove(&self, hash: u64, key: &str) -> bool {
        let removed = self.cache.remove_if(&hash, |shelved| *shelved.key == *key);
        if removed.is_some() {
            let _ = fs::remove_file(self.folder.join(file_name(hash)));
        }
        removed.is_some()
    }

    pub(super) fn purge(&self, which: impl Fn(&str, &str) -> bool) -> usize {
        let count = AtomicUsize::new(0);
        self.cache.retain(|hash, shelved| {
            let meant = which(&shelved.key, &shelved.tags);
            if meant {
                count.fetch_add(1, Relaxed);
                let _ = fs::remove_file(self.folder.join(file_name(*hash)));
            }
            !meant
        });
        count.into_inner()
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.cache.weight()
    }

    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }
}
