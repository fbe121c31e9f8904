//! Purges by URL, by prefix and by surrogate key.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::fetch::FetchOutcome;

/// The objects that a purge removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeTarget {
    /// One URL with all its variants.
    Url(String),
    /// All URLs with this prefix.
    Prefix(String),
    /// All objects whose `Surrogate-Key` header contains this tag.
    Tag(String),
}

impl PurgeTarget {
    fn matches_entry(&self, key: &CacheKey, object: Option<&CachedObject>) -> bool {
        let target = key.primary_key();
        match self {
            PurgeTarget::Url(url) => target == url,
            PurgeTarget::Prefix(prefix) => target.starts_with(prefix.as_str()),
            PurgeTarget::Tag(tag) => {
                object.is_some_and(|object| object.surrogate_keys.iter().any(|t| **t == **tag))
            }
        }
    }
}

/// Returns whether `key` is the object's key `of`, or `of` with the lines of a variant or block.
fn is_key_or_variant(key: &CacheKey, of: &str) -> bool {
    let rest = key.as_str().strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
}

impl PurgeTarget {
    fn matches_disk_entry(&self, key: &str, tags: &str) -> bool {
        let key = CacheKey::from(key);
        match self {
            PurgeTarget::Tag(tag) => tags.split(' ').any(|other| other == tag),
            _ => self.matches_entry(&key, None),
        }
    }
}

impl Edge {
    /// Removes the cached responses of a key after a request that may have changed the resource at
    /// the origin (RFC 9111 section 4.4). Responses of fetches in progress are not stored.
    pub fn invalidate_key(&self, key: &str) {
        self.flights
            .mark_purged(|other, _| is_key_or_variant(other, key));
        let mut keys = vec![CacheKey::from(key)];
        if self.memory.get(key).is_none() && self.disk.may_have_entry(key) {
            // Memory has no list of the variants, so the purge finds variants on disk by their
            // common key prefix.
            self.disk
                .purge_entries(|other, _| is_key_or_variant(&CacheKey::from(other), key));
        }
        if let Some(CacheEntry::Variants(varies)) = self.memory.get(key) {
            keys.extend(varies.list_variants());
        }
        for key in keys {
            match self.memory.get(&key) {
                Some(CacheEntry::Object(object)) => {
                    self.remove_block_object(&object);
                    self.remove_cached(&key);
                }
                Some(CacheEntry::Variants(_)) | None => self.remove_cached(&key),
                Some(CacheEntry::Block(_) | CacheEntry::Unshareable { .. }) => {}
            }
        }
    }

    /// Removes objects. A `soft` purge only marks the objects in memory. The edge revalidates a
    /// marked object before the next use. If the origin fails, the edge may serve the stale object.
    /// Responses of fetches in progress are delivered but not stored. Returns the number of
    /// affected objects and fetches.
    pub fn purge_objects(&self, target: &PurgeTarget, soft: bool) -> usize {
        // Fetches are marked before stored objects are removed. A fetch checks its mark after it
        // has stored its object, so an object that is stored during the purge is removed, too.
        let marked_fetches = self.flights.mark_purged(|key, outcome| {
            match outcome {
                Some(FetchOutcome::Stored(object, _) | FetchOutcome::Revalidated(object)) => {
                    target.matches_entry(key, Some(object))
                }
                // The tags of a response that has not arrived yet are unknown. The origin may have
                // generated the response before the purge, so the fetch is marked.
                None if matches!(target, PurgeTarget::Tag(_)) => true,
                _ => target.matches_entry(key, None),
            }
        });
        let matched = Mutex::new(Vec::new());
        self.memory.retain(|key, entry| {
            let object = match entry {
                CacheEntry::Object(object) => object,
                // A soft purge keeps the blocks, which stay useful if their object is revalidated.
                CacheEntry::Block(_) => return soft || !target.matches_entry(key, None),
                CacheEntry::Variants(_) | CacheEntry::Unshareable { .. } => return true,
            };
            if !target.matches_entry(key, Some(object)) {
                return true;
            }
            object.is_purged.store(true, Relaxed);
            let mut matched = matched.lock().unwrap_or_else(PoisonError::into_inner);
            matched.push(object.clone());
            soft
        });
        let matched = matched.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The disk tier is purged after memory, because evicted objects move from memory to disk.
        // Even a soft purge removes objects from disk.
        let on_disk = self
            .disk
            .purge_entries(|key, tags| target.matches_disk_entry(key, tags));
        if !soft {
            matched
                .iter()
                .for_each(|object| self.remove_block_object(object));
        }
        marked_fetches + matched.len() + on_disk
    }
}
