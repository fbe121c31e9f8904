//! Stores complete objects in memory, up to a maximum number of bytes.
//!
//! The crate `quick_cache` chooses the objects to evict. `quick_cache` uses the CLOCK policy with a
//! ghost list. Like S3-FIFO, this policy resists scans.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Equivalent, Lifecycle, OptionsBuilder, Weighter};

/// The memory cost of a key or object.
pub trait MemoryWeight {
    /// Returns the size in bytes, including the size of headers.
    fn weight_bytes(&self) -> u64;
}

/// The cache. Values should be cheap to clone, like an `Arc`.
pub struct MemoryCache<K, V> {
    cache: Cache<K, V, EntryWeigher, DefaultHashBuilder, EvictionHook<K, V>>,
    bytes_max: u64,
    object_bytes_max: u64,
}

#[derive(Debug, Clone)]
struct EntryWeigher;

/// A function that is called for each evicted object, but not for replaced or removed objects. The
/// function must not call the cache.
pub type EvictionListener<K, V> = Arc<dyn Fn(&K, &V) + Send + Sync>;

struct EvictionHook<K, V>(Option<EvictionListener<K, V>>);

impl<K, V> Clone for EvictionHook<K, V> {
    fn clone(&self) -> EvictionHook<K, V> {
        EvictionHook(self.0.clone())
    }
}

impl<K, V> Lifecycle<K, V> for EvictionHook<K, V> {
    type RequestState = ();

    fn before_evict(&self, (): &mut (), key: &K, value: &mut V) {
        if let Some(on_evict) = &self.0 {
            on_evict(key, value);
        }
    }
}

impl<K: MemoryWeight, V: MemoryWeight> Weighter<K, V> for EntryWeigher {
    fn weight(&self, key: &K, value: &V) -> u64 {
        (key.weight_bytes() + value.weight_bytes()).max(1)
    }
}

/// The number of shards. Each shard has its own lock. An object must fit into one shard.
const SHARDS: usize = 8;
/// An object may take at most a quarter of a shard, so that it does not evict all other objects.
const SHARE: u64 = 4;
/// Estimated size of an object in bytes. It is used for the initial allocation only.
const OBJECT_BYTES_LIKELY: u64 = 256 << 10;

impl<K: Eq + Hash + Clone + MemoryWeight, V: MemoryWeight + Clone> MemoryCache<K, V> {
    /// Creates a cache of at most `bytes_max` bytes. `leaving` is called for each evicted object,
    /// and must neither block nor call the cache.
    pub fn new(bytes_max: u64, leaving: Option<EvictionListener<K, V>>) -> MemoryCache<K, V> {
        let items = usize::try_from(bytes_max / OBJECT_BYTES_LIKELY).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .weight_capacity(bytes_max)
            .estimated_items_capacity(items.clamp(64, 1 << 20))
            .build()
            .unwrap_or_else(|_| unreachable!("both capacities are set"));
        let cache = Cache::with_options(
            options,
            EntryWeigher,
            DefaultHashBuilder::default(),
            EvictionHook(leaving),
        );
        MemoryCache {
            bytes_max,
            object_bytes_max: cache.shard_capacity() / SHARE,
            cache,
        }
    }

    /// The maximum weight of an object with its key, in bytes.
    pub fn object_bytes_max(&self) -> u64 {
        self.object_bytes_max
    }

    /// Returns the object for a key, and records the hit.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.cache.get(key)
    }

    /// Inserts or replaces an object. An object that exceeds [`MemoryCache::object_bytes_max`] is
    /// not stored, and the previous object of the key is removed.
    pub fn insert(&self, key: K, value: V) {
        if key.weight_bytes() + value.weight_bytes() <= self.object_bytes_max {
            self.cache.insert(key, value);
        } else {
            self.cache.remove(&key);
        }
    }

    /// Removes an object.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.cache.remove(key).map(|(_, value)| value)
    }

    /// Evicts a sixteenth of the cached bytes. Lowers the capacity to the remaining bytes until
    /// [`MemoryCache::restore_capacity`] is called.
    pub fn shrink(&self) {
        self.cache.set_capacity(self.cache.weight() / 16 * 15);
    }

    /// Restores the capacity that [`MemoryCache::shrink`] has lowered.
    pub fn restore_capacity(&self) {
        if self.cache.capacity() < self.bytes_max {
            self.cache.set_capacity(self.bytes_max);
        }
    }

    /// Removes the objects for which `keep` returns `false`.
    pub fn retain(&self, keep: impl Fn(&K, &V) -> bool) {
        self.cache.retain(keep);
    }

    /// Returns all objects. Changes during this call may be missing from the result.
    pub fn all_entries(&self) -> Vec<(K, V)> {
        self.cache.iter().collect()
    }

    /// The size of all objects and their keys, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.cache.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }
}

impl<K, V> fmt::Debug for MemoryCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MemoryCache(objects up to {} bytes)",
            self.object_bytes_max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MemoryWeight for u32 {
        fn weight_bytes(&self) -> u64 {
            4
        }
    }

    impl MemoryWeight for Vec<u8> {
        fn weight_bytes(&self) -> u64 {
            self.len() as u64
        }
    }

    #[test]
    fn the_cache_never_exceeds_its_bound() {
        let memory: MemoryCache<u32, Vec<u8>> = MemoryCache::new(1 << 20, None);
        for key in 0..4000 {
            memory.insert(key, vec![0; 1 + (key as usize * 37) % 9000]);
            assert!(
                memory.stored_bytes() <= 1 << 20,
                "{} at {key}",
                memory.stored_bytes()
            );
        }
        assert!(
            memory.stored_bytes() > 1 << 19,
            "it should be in use: {}",
            memory.stored_bytes()
        );
        let each = |(key, value): &(u32, Vec<u8>)| key.weight_bytes() + value.weight_bytes();
        let summed: u64 = memory.all_entries().iter().map(each).sum();
        assert_eq!(summed, memory.stored_bytes());
    }

    #[test]
    fn evicting_calls_the_listener_but_replacing_and_removing_do_not() {
        let evicted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = evicted.clone();
        let listener: EvictionListener<u32, Vec<u8>> =
            Arc::new(move |key, _| note.lock().unwrap().push(*key));
        let memory = MemoryCache::new(1 << 20, Some(listener));
        memory.insert(0, vec![0; 100]);
        memory.insert(0, vec![1; 100]);
        memory.remove(&0);
        memory.retain(|_, _| false);
        assert!(evicted.lock().unwrap().is_empty());
        for key in 1..1000 {
            memory.insert(key, vec![0; 10_000]);
        }
        assert_eq!(evicted.lock().unwrap().len(), 999 - memory.len());
    }

    #[test]
    fn an_object_over_the_weight_limit_only_removes_its_old_value() {
        let memory: MemoryCache<u32, Vec<u8>> = MemoryCache::new(1 << 20, None);
        let most = usize::try_from(memory.object_bytes_max()).unwrap() - 4;
        memory.insert(1, vec![1; most]);
        assert!(memory.get(&1).is_some());
        memory.insert(1, vec![2; most + 1]);
        assert_eq!(memory.get(&1), None);
        assert!(memory.is_empty());
    }

    #[test]
    fn a_cache_that_shrinks_evicts_and_stays_small_until_restored() {
        let memory: MemoryCache<u32, Vec<u8>> = MemoryCache::new(1 << 20, None);
        let fill = || (0..1000).for_each(|key| memory.insert(key, vec![0; 10_000]));
        fill();
        let full = memory.stored_bytes();
        for _ in 0..10 {
            memory.shrink();
        }
        let small = memory.stored_bytes();
        assert!(small < full * 6 / 10, "{small} of {full}");
        fill();
        assert!(
            memory.stored_bytes() <= full * 6 / 10,
            "{}",
            memory.stored_bytes()
        );
        memory.restore_capacity();
        fill();
        assert!(
            memory.stored_bytes() > full * 8 / 10,
            "{}",
            memory.stored_bytes()
        );
    }
}
