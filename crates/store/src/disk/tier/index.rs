//! Which objects are on disk, and who stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};

use super::{file_name, hash};

/// What is known of an object without opening its file. A few hundred bytes, most of it the key.
#[derive(Debug)]
pub(super) struct Shelved {
    key: Box<str>,
    tags: Box<str>,
    bytes: u64,
    /// Its body was written, or found to be right, by this process.
    checked: AtomicBool,
}

/// By the hash of the key, which names the file.
#[derive(Debug)]
pub(super) struct Index {
    folder: PathBuf,
    cache: Cache<u64, Arc<Shelved>, ByBytes, DefaultHashBuilder, Unlink>,
}

#[derive(Debug, Clone)]
struct ByBytes;

/// Removes the files of those who go.
#[derive(Debug, Clone)]
struct Unlink(PathBuf);

/// Files take whole blocks of the disk.
const DISK_BLOCK_BYTES: u64 = 4096;
/// A guess at the size of what is kept: only sets how much is laid out at first.
const OBJECT_BYTES_LIKELY: u64 = 512 << 10;

impl Weighter<u64, Arc<Shelved>> for ByBytes {
    fn weight(&self, _: &u64, shelved: &Arc<Shelved>) -> u64 {
        shelved.bytes.next_multiple_of(DISK_BLOCK_BYTES)
    }
}

impl Lifecycle<u64, Arc<Shelved>> for Unlink {
    type RequestState = ();

    // Unlike `on_evict` not called for what is replaced, whose file has the same name.
    fn before_evict(&self, (): &mut (), hash: &u64, _: &mut Arc<Shelved>) {
        // Whoever has it open reads on.
        let _ = fs::remove_file(self.0.join(file_name(*hash)));
    }
}

impl Shelved {
    pub(super) fn new(key: &str, tags: &str, bytes: u64, checked: bool) -> Shelved {
        Shelved {
            key: key.into(),
            tags: tags.into(),
            bytes,
            checked: AtomicBool::new(checked),
        }
    }

    pub(super) fn is_checked(&self) -> bool {
        self.checked.load(Relaxed)
    }

    pub(super) fn check(&self) {
        self.checked.store(true, Relaxed);
    }
}

impl Index {
    pub(super) fn new(folder: &Path, bytes_max: u64) -> Index {
        let items = usize::try_from(bytes_max / OBJECT_BYTES_LIKELY).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(1)
            .weight_capacity(bytes_max)
            .estimated_items_capacity(items.clamp(64, 1 << 22))
            .build()
            .unwrap_or_else(|_| unreachable!("both capacities are set"));
        let unlink = Unlink(folder.to_owned());
        let hasher = DefaultHashBuilder::default();
        Index {
            folder: folder.to_owned(),
            cache: Cache::with_options(options, ByBytes, hasher, unlink),
        }
    }

    /// Whether it is there; no use of it.
    pub(super) fn has(&self, hash: u64, key: &str) -> bool {
        let found = self.cache.peek(&hash);
        found.is_some_and(|shelved| *shelved.key == *key)
    }

    /// What is there, which counts as a use.
    pub(super) fn get(&self, hash: u64, key: &str) -> Option<Arc<Shelved>> {
        let found = self.cache.get(&hash)?;
        (*found.key == *key).then_some(found)
    }

    /// A file has appeared. False: it does not stay, and is removed.
    pub(super) fn add(&self, key: &str, shelved: Shelved) -> bool {
        self.cache.insert(hash(key), Arc::new(shelved));
        self.has(hash(key), key)
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

    pub(super) fn bytes(&self) -> u64 {
        self.cache.weight()
    }

    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }
}
