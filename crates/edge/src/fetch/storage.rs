//! Storage of fetched objects under the keys that later requests look up.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use http::HeaderMap;
use store::cache::FetchLeader;

use super::{FetchOutcome, FetchRequest};
use crate::Edge;
use crate::cache_entry::{CacheEntry, VariantIndex};
use crate::cache_key::CacheKey;
use crate::cache_outcome::UncacheableReason;
use crate::cached_object::CachedObject;
use crate::config::EdgeSettings;

/// Maximum number of blocks that are removed together with their object.
const FORGOTTEN_BLOCKS_MAX: u64 = 4096;

impl Edge {
    /// Registers a fetch under the key of its variant. The variant is unknown until the response
    /// head arrives.
    ///
    /// Requests for another variant then start their own fetch, and requests for this variant join
    /// this fetch.
    pub(super) fn announce_variant(
        &self,
        lead: &mut FetchLeader<CacheKey, FetchOutcome>,
        request: &FetchRequest,
        object: &CachedObject,
    ) {
        if !object.vary.is_empty() && !lead.is_purged() {
            lead.add_key(&self.register_variant_key(
                &request.primary_key,
                object,
                &request.client_headers,
            ));
        }
    }

    /// Stores a complete object, unless it was purged during the fetch.
    ///
    /// A purge first marks the running fetches and then searches the cache. This function first
    /// inserts the object and then checks the mark. In both orders of execution, a purged object
    /// does not stay in the cache.
    pub(super) fn store_object(
        &self,
        lead: &FetchLeader<CacheKey, FetchOutcome>,
        request: &FetchRequest,
        object: &Arc<CachedObject>,
    ) {
        if lead.is_purged() {
            return;
        }
        let key = self.register_variant_key(&request.primary_key, object, &request.client_headers);
        if key == request.primary_key && self.may_have_variants(&key) {
            object.has_unlisted_variants.store(true, Relaxed);
        }
        self.insert_into_memory(key.clone(), CacheEntry::Object(object.clone()));
        if lead.is_purged() {
            self.remove_cached(&key);
        }
    }

    /// Stops request coalescing for a key during [`EdgeSettings::UNSHAREABLE_TTL`], because the
    /// key's responses are not shareable.
    ///
    /// With `always_pass`, all requests bypass the cache during this time. Without `always_pass`,
    /// one request at a time may still lead a fetch, and a cacheable response of this fetch is
    /// stored. `always_pass` is for large objects that the edge cannot cache. If the origin ignores
    /// ranges, each fetch would request the whole object and discard the response.
    pub(crate) fn mark_unshareable(&self, key: &CacheKey, always_pass: bool) {
        let until = Instant::now() + EdgeSettings::UNSHAREABLE_TTL;
        let mark = CacheEntry::Unshareable {
            until,
            always_pass,
            has_unlisted_variants: self.may_have_variants(key),
        };
        self.insert_into_memory(key.clone(), mark);
    }

    /// Marks a key as unshareable after a response that must not be stored for this reason.
    ///
    /// If the reason depends on the request, responses to other requests may be shareable, so a
    /// cached response stays. Otherwise, any client could remove cached responses.
    pub(super) fn mark_unshareable_for(&self, key: &CacheKey, reason: UncacheableReason) {
        if !(reason.depends_on_request() && self.may_have_shared_entry(key)) {
            self.mark_unshareable(key, reason == UncacheableReason::TooLarge);
        }
    }

    /// Returns whether memory or disk may have an object or a variant index under this key.
    fn may_have_shared_entry(&self, key: &CacheKey) -> bool {
        matches!(
            self.memory.get(key),
            Some(CacheEntry::Object(_) | CacheEntry::Variants(_))
        ) || self.disk.may_have_entry(key.as_str())
    }

    /// Returns the key of an object. This is the primary key, or the key of the variant if the
    /// object varies by request headers. Adds a new variant to the variants of the primary key.
    pub(super) fn register_variant_key(
        &self,
        primary: &CacheKey,
        object: &CachedObject,
        client_headers: &HeaderMap,
    ) -> CacheKey {
        if object.vary.is_empty() {
            return primary.clone();
        }
        let mut names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
        let varies = match self.memory.get(primary.as_str()) {
            Some(CacheEntry::Variants(varies))
                if names.iter().all(|n| varies.header_names.contains(n)) =>
            {
                varies
            }
            // The new set of header names changes all variant keys. Lookups no longer find the
            // variants that are stored under the old keys, so these variants are evicted later.
            old => {
                if let Some(CacheEntry::Variants(old)) = old {
                    names.extend(old.header_names.iter().cloned());
                    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
                    names.dedup();
                }
                let varies = Arc::new(VariantIndex::new(names));
                self.insert_into_memory(primary.clone(), CacheEntry::Variants(varies.clone()));
                varies
            }
        };
        let variant = primary.for_variant(&varies.header_names, client_headers);
        if let Some(oldest) = varies.insert_variant(&variant) {
            self.remove_cached(&oldest);
        }
        variant
    }

    /// Removes an object that is stored in blocks, together with its blocks.
    pub(crate) fn remove_object_and_blocks(&self, object: &Arc<CachedObject>) {
        let Some(blocks) = &object.blocks else {
            return;
        };
        if let Some(CacheEntry::Object(cached)) = self.memory.get(&blocks.object_key)
            && Arc::ptr_eq(&cached, object)
        {
            self.remove_cached(&blocks.object_key);
        }
        // For very large objects, some blocks remain. Lookups no longer find these blocks, so they
        // are evicted later.
        let count = object
            .declared_len
            .unwrap_or(0)
            .div_ceil(blocks.block_bytes);
        for n in 0..count.min(FORGOTTEN_BLOCKS_MAX) {
            self.remove_cached(&blocks.block_key(n));
        }
    }
}
