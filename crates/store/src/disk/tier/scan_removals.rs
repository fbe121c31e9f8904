//! Removals that arrive while the folder is scanned.
//!
//! The index does not contain the files that the scan has not read yet. Therefore removals are
//! noted during the scan, and the scan removes the files of noted objects.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::file_name::hash_key;

/// Selects objects by key and tags.
pub(super) type PurgeSelector = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// Maximum number of noted keys. They take at most about 20 MB of memory.
const KEYS_MAX: usize = 1 << 20;
/// Maximum number of noted purges. The scan calls all selectors for each file. At this number, the
/// calls take about as long as reading a header.
const PURGES_MAX: usize = 1024;

/// The objects that were removed or purged since the scan started. If there are too many removals
/// or purges, all objects count as removed.
#[derive(Default)]
pub(super) struct ScanRemovals {
    /// The hashes of the removed keys. The folder contains at most one file for each hash, so
    /// another key with the same hash only causes the removal of one file too many.
    key_hashes: HashSet<u64>,
    purges: Vec<PurgeSelector>,
    all: bool,
}

impl ScanRemovals {
    pub(super) fn note_key(&mut self, key: &str) {
        if !self.all {
            self.key_hashes.insert(hash_key(key));
            self.limit_memory();
        }
    }

    pub(super) fn note_purge(&mut self, which: PurgeSelector) {
        if !self.all {
            self.purges.push(which);
            self.limit_memory();
        }
    }

    /// Returns whether an object with this key and these tags was removed.
    pub(super) fn is_removed(&self, key: &str, tags: &str) -> bool {
        self.all
            || self.key_hashes.contains(&hash_key(key))
            || self.purges.iter().any(|which| which(key, tags))
    }

    fn limit_memory(&mut self) {
        if self.key_hashes.len() > KEYS_MAX || self.purges.len() > PURGES_MAX {
            *self = ScanRemovals {
                all: true,
                ..ScanRemovals::default()
            };
        }
    }
}

impl fmt::Debug for ScanRemovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, purges) = (self.key_hashes.len(), self.purges.len());
        write!(
            f,
            "ScanRemovals({keys} keys, {purges} purges, all: {})",
            self.all
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_removals_remove_all_objects() {
        let mut removals = ScanRemovals::default();
        removals.note_key("/b");
        removals.key_hashes.extend(1..KEYS_MAX as u64);
        assert_eq!(removals.key_hashes.len(), KEYS_MAX);
        assert!(removals.is_removed("/b", "") && !removals.is_removed("/a", ""));
        removals.note_key("one more");
        assert!(removals.is_removed("/a", ""));
    }

    #[test]
    fn too_many_purges_remove_all_objects() {
        let mut removals = ScanRemovals::default();
        for _ in 0..PURGES_MAX {
            removals.note_purge(Arc::new(|key, tags| key == "/b" || tags == "t"));
        }
        let found = [("/a", ""), ("/b", ""), ("/a", "t")];
        let found = found.map(|(key, tags)| removals.is_removed(key, tags));
        assert_eq!(found, [false, true, true]);
        removals.note_purge(Arc::new(|_, _| false));
        assert!(removals.is_removed("/a", ""));
    }
}
