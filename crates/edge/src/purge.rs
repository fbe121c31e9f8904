//! Purges by URL, by prefix and by surrogate key.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cache_key::{self, CacheKey};
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
    fn matches_entry(&self, key: &str, object: Option<&CachedObject>) -> bool {
        let target = cache_key::primary_key(key);
        match self {
            PurgeTarget::Url(url) => target == url,
            PurgeTarget::Prefix(prefix) => target.starts_with(prefix.as_str()),
            PurgeTarget::Tag(tag) => {
                object.is_some_and(|object| object.surrogate_keys.iter().any(|t| **t == **tag))
            }
        }
    }

    fn matches_disk_entry(&self, key: &str, tags: &str) -> bool {
        match self {
            PurgeTarget::Tag(tag) => tags.split(' ').any(|other| other == tag),
            _ => self.matches_entry(key, None),
        }
    }
}

impl Edge {
    /// Removes the cached responses of a URL after a request that may have changed the resource at
    /// the origin (RFC 9111 section 4.4). Responses of fetches in progress are not stored. `key` is
    /// the cache key of the request. The responses of all pools are removed, because their origins
    /// may serve the same resource.
    pub fn invalidate_key(&self, key: &CacheKey) {
        let url = key.primary_key();
        let pools = self.settings.pools.keys();
        let mut keys: Vec<_> = pools.map(|pool| CacheKey::for_pool(url, pool)).collect();
        keys.push(CacheKey::from(url));
        if keys.iter().any(|key| self.may_have_variants(key)) {
            self.purge_objects(&PurgeTarget::Url(url.to_owned()), false);
            // The purge searches the whole cache, and keeps variant indexes and unshareable marks.
            // Without variants, they must not cause another search at the next invalidation.
            keys.iter().for_each(|key| self.forget_variants(key));
            return;
        }
        self.flights
            .mark_purged(|other, _| other.primary_key() == url);
        for key in keys {
            if let Some(CacheEntry::Object(object)) = self.memory.get(&key) {
                self.remove_object_and_blocks(&object);
                self.remove_cached(&key);
            }
        }
    }

    /// Returns whether there may be variants under a key. Their keys are then unknown, because a
    /// variant index lists only the variants that were stored since the index was created or loaded
    /// from disk. An object or an unshareable mark may have replaced an index.
    pub(crate) fn may_have_variants(&self, key: &CacheKey) -> bool {
        match self.memory.get(key) {
            Some(CacheEntry::Variants(_)) => true,
            Some(CacheEntry::Unshareable {
                has_unlisted_variants,
                ..
            }) => has_unlisted_variants,
            Some(CacheEntry::Object(object)) => object.has_unlisted_variants.load(Relaxed),
            Some(CacheEntry::Block(_)) => false,
            None => self.disk.may_have_entry(key.as_str()),
        }
    }

    /// Removes the variant index of a key whose variants have been removed. Keeps an unshareable
    /// mark, because otherwise each POST would let one more request fetch an object in vain.
    fn forget_variants(&self, key: &CacheKey) {
        match self.memory.get(key) {
            Some(CacheEntry::Unshareable {
                until, always_pass, ..
            }) => {
                let mark = CacheEntry::Unshareable {
                    until,
                    always_pass,
                    has_unlisted_variants: false,
                };
                self.insert_into_memory(key.clone(), mark);
            }
            _ => self.remove_cached(key),
        }
    }

    /// Removes objects. A `soft` purge only marks the objects in memory. The edge revalidates a
    /// marked object before the next use. If the origin fails, the edge may serve the stale object.
    /// Responses of fetches in progress are delivered but not stored. Returns the number of
    /// affected objects and fetches.
    pub fn purge_objects(&self, target: &PurgeTarget, soft: bool) -> usize {
        // The disk tier is purged first. A request that starts to load an object from disk after the
        // fetches are marked then finds no object.
        let purge_disk = || match target {
            PurgeTarget::Url(url) => self.disk.remove_url(url),
            PurgeTarget::Prefix(_) | PurgeTarget::Tag(_) => {
                let target = target.clone();
                self.disk
                    .purge_entries(move |key, tags| target.matches_disk_entry(key, tags))
            }
        };
        let on_disk = purge_disk();
        // Fetches are marked before stored objects are removed. A fetch checks its mark after it
        // has stored its object, so an object that is stored during the purge is removed, too.
        let marked_fetches = self.flights.mark_purged(|key, outcome| {
            match outcome {
                Some(FetchOutcome::Stored(shared) | FetchOutcome::Revalidated(shared)) => {
                    target.matches_entry(key.as_str(), Some(&shared.object))
                }
                // The tags of a response that has not arrived yet are unknown. The origin may have
                // generated the response before the purge, so the fetch is marked.
                None if matches!(target, PurgeTarget::Tag(_)) => true,
                _ => target.matches_entry(key.as_str(), None),
            }
        });
        let matched = Mutex::new(Vec::new());
        self.memory.retain(|key, entry| {
            let object = match entry {
                CacheEntry::Object(object) => object,
                // A soft purge keeps the blocks, which stay useful if their object is revalidated.
                CacheEntry::Block(_) => return soft || !target.matches_entry(key.as_str(), None),
                CacheEntry::Variants(_) | CacheEntry::Unshareable { .. } => return true,
            };
            if !target.matches_entry(key.as_str(), Some(object)) {
                return true;
            }
            object.is_purged.store(true, Relaxed);
            let mut matched = matched.lock().unwrap_or_else(PoisonError::into_inner);
            matched.push(object.clone());
            soft
        });
        let matched = matched.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The disk tier is purged again after memory, because evicted objects move from memory to
        // disk. Even a soft purge removes objects from disk.
        let on_disk = on_disk + purge_disk();
        if !soft {
            matched
                .iter()
                .for_each(|object| self.remove_object_and_blocks(object));
        }
        marked_fetches + matched.len() + on_disk
    }
}
