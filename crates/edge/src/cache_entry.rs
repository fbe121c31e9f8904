//! Entries of the memory tier.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::header::HeaderName;
use store::cache::MemoryWeight;

use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::object_body::SharedObjectBody;

/// Approximate size of an entry in bytes, without its headers and body.
const ENTRY_BYTES: u64 = 1024;
/// Approximate size of an object's prepared hit headers in bytes, without their names and values.
const PREPARED_BYTES: u64 = 768;
/// Maximum number of variants of one URL. A further variant evicts the oldest variant.
const VARIANTS_MAX: usize = 64;

/// The value that the memory tier stores under a key.
#[derive(Debug, Clone)]
pub enum CacheEntry {
    /// A cached object.
    Object(Arc<CachedObject>),
    /// A block of a large object.
    Block(Arc<SharedObjectBody>),
    /// The URL has variants. The index contains the names of the request headers that select a
    /// variant, and the keys of the variants.
    Variants(Arc<VariantIndex>),
    /// A recent response was not shareable. Before `until`, requests do not wait for each other's
    /// fetches.
    Unshareable {
        until: Instant,
        /// Whether all requests bypass the cache before `until`. If not, one request at a time
        /// leads a fetch, because the response may be shareable. The field is true for large
        /// objects that the edge cannot cache. If the origin ignores ranges, such a fetch would
        /// request the whole object and discard the response.
        always_pass: bool,
        /// Whether the mark replaced a variant index, so that unlisted variants may be cached.
        has_unlisted_variants: bool,
    },
}

/// The names of the request headers that select a URL's variant, and the keys of the variants that
/// were stored since the index was created or loaded from disk.
#[derive(Debug)]
pub struct VariantIndex {
    pub header_names: Vec<HeaderName>,
    variant_keys: Mutex<VecDeque<CacheKey>>,
}

impl VariantIndex {
    pub fn new(names: Vec<HeaderName>) -> VariantIndex {
        VariantIndex {
            header_names: names,
            variant_keys: Mutex::default(),
        }
    }

    /// Adds a variant. If the index has too many variants, returns the key of the oldest variant,
    /// which the caller must evict.
    pub fn insert_variant(&self, variant: &CacheKey) -> Option<CacheKey> {
        let mut keys = self
            .variant_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        keys.retain(|other| other != variant);
        keys.push_back(variant.clone());
        if keys.len() > VARIANTS_MAX {
            keys.pop_front()
        } else {
            None
        }
    }
}

impl MemoryWeight for CacheEntry {
    fn weight_bytes(&self) -> u64 {
        match self {
            CacheEntry::Object(object) => {
                let heads = ENTRY_BYTES + PREPARED_BYTES + object.header_bytes();
                heads + object.body.memory_bytes()
            }
            CacheEntry::Block(content) => ENTRY_BYTES + content.memory_bytes(),
            CacheEntry::Variants(_) => ENTRY_BYTES + (VARIANTS_MAX * 200) as u64,
            CacheEntry::Unshareable { .. } => ENTRY_BYTES,
        }
    }
}

impl MemoryWeight for CacheKey {
    fn weight_bytes(&self) -> u64 {
        self.as_str().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;

    #[test]
    fn variants_are_bounded_and_the_oldest_is_evicted() {
        let varies = VariantIndex::new(vec![header::ORIGIN]);
        let key = |n: usize| CacheKey::from(format!("/a\norigin:{n}").as_str());
        for n in 0..VARIANTS_MAX {
            assert_eq!(varies.insert_variant(&key(n)), None);
        }
        assert_eq!(
            varies.insert_variant(&key(0)),
            None,
            "a known variant becomes the newest one"
        );
        assert_eq!(varies.insert_variant(&key(999)), Some(key(1)));
    }
}
