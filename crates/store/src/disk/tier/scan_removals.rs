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

/// Maximum number of noted keys and groups together. They take at most about 20 MB of memory.
const HASHES_MAX: usize = 1 << 20;
/// Maximum number of noted purges. The scan calls all selectors for each file. At this number, the
/// calls take about as long as reading a header.
const PURGES_MAX: usize = 1024;

/// The objects that were removed or purged since the scan started. If there are too many removals
/// or purges, all objects count as removed. Clients can cause the removal of keys and groups, but
/// only an operator can cause a purge by a selector.
#[derive(Default)]
pub(super) struct ScanRemovals {
    /// The hashes of the removed keys. The folder contains at most one file for each hash, so
    /// another key with the same hash only causes the removal of one file too many.
    key_hashes: HashSet<u64>,
    /// The hashes of the removed groups (see [`key_group`]). Another group with the same hash also
    /// loses its files.
    group_hashes: HashSet<u64>,
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

    pub(super) fn note_group(&mut self, group: &str) {
        if !self.all {
            self.group_hashes.insert(hash_key(group));
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
            || self.group_hashes.contains(&hash_key(key_group(key)))
            || self.purges.iter().any(|which| which(key, tags))
    }

    fn limit_memory(&mut self) {
        let hash_count = self.key_hashes.len() + self.group_hashes.len();
        if hash_count > HASHES_MAX || self.purges.len() > PURGES_MAX {
            *self = ScanRemovals {
                all: true,
                ..ScanRemovals::default()
            };
        }
    }
}

/// Returns the group of a key, which is the first line of the key.
pub(super) fn key_group(key: &str) -> &str {
    key.split('\n').next().unwrap_or_default()
}

impl fmt::Debug for ScanRemovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, groups) = (self.key_hashes.len(), self.group_hashes.len());
        let (purges, all) = (self.purges.len(), self.all);
        write!(
            f,
            "ScanRemovals({keys} keys, {groups} groups, {purges} purges, all: {all})"
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
        removals.key_hashes.extend(1..HASHES_MAX as u64);
        assert_eq!(removals.key_hashes.len(), HASHES_MAX);
        assert!(removals.is_removed("/b", "") && !removals.is_removed("/a", ""));
        removals.note_group("one more");
        assert!(removals.is_removed("/a", ""));
    }

    /// Regression: each removed group was noted as a purge, so 1025 groups removed all objects.
    #[test]
    fn many_removed_groups_remove_no_other_objects() {
        let mut removals = ScanRemovals::default();
        for n in 0..=PURGES_MAX {
            removals.note_group(&format!("/{n}"));
        }
        let found = ["/0", "/7\nvariant", "/70000", "/a\n/7", "/"];
        let found = found.map(|key| removals.is_removed(key, ""));
        assert_eq!(found, [true, true, false, false, false]);
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
