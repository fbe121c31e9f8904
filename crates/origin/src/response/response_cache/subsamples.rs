//! Subsamples of recently encrypted segments. If a segment's subsamples are known, the segment can
//! be sent while its media arrives, even if the segment itself is not cached.

use media::protection::SubsampleMap;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;

/// The capacity is 1/32 of the segment cache's memory.
const MEMORY_SHARE: u64 = 32;
/// Estimated memory of an entry in addition to its map and path, in bytes.
const ENTRY_BYTES: usize = 128;

/// Subsamples by canonical URL path, which identifies the bytes of the media.
pub(crate) struct SubsampleCache {
    entries: Cache<Box<str>, Arc<SubsampleMap>, SubsampleMapWeigher>,
}

#[derive(Clone)]
struct SubsampleMapWeigher;

impl Weighter<Box<str>, Arc<SubsampleMap>> for SubsampleMapWeigher {
    fn weight(&self, path: &Box<str>, map: &Arc<SubsampleMap>) -> u64 {
        (path.len() + map.heap_bytes() + ENTRY_BYTES) as u64
    }
}

impl SubsampleCache {
    /// Creates the subsample cache for a segment cache of this size.
    pub(crate) fn new(segment_memory_bytes: u64) -> SubsampleCache {
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(1024)
            .weight_capacity(segment_memory_bytes / MEMORY_SHARE)
            .build()
            .unwrap_or_else(|_| unreachable!("all required options are set"));
        let hash = DefaultHashBuilder::default();
        SubsampleCache {
            entries: Cache::with_options(options, SubsampleMapWeigher, hash, Default::default()),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<SubsampleMap>> {
        self.entries.get(path)
    }

    pub(crate) fn insert(&self, path: &str, map: SubsampleMap) {
        self.entries.insert(path.into(), Arc::new(map));
    }
}
