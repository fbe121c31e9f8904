//! Whole objects in memory, bounded by bytes.
//!
//! quick_cache decides who stays (CLOCK with a ghost list, scan-resistant like S3-FIFO).

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Equivalent, Lifecycle, OptionsBuilder, Weighter};

/// What something costs to keep.
pub trait Weigh {
    /// Bytes, those of its head too.
    fn bytes(&self) -> u64;
}

/// The tier. Cloned values are cheap: they should be `Arc`s.
pub struct Memory<K, V> {
    cache: Cache<K, V, ByBytes, DefaultHashBuilder, Leaving<K, V>>,
    object_bytes_max: u64,
}

#[derive(Debug, Clone)]
struct ByBytes;

/// Who is told of what makes room for others (not of what is replaced or removed). It must not ask
/// the tier anything.
pub type Told<K, V> = Arc<dyn Fn(&K, &V) + Send + Sync>;

struct Leaving<K, V>(Option<Told<K, V>>);

impl<K, V> Clone for Leaving<K, V> {
    fn clone(&self) -> Leaving<K, V> {
        Leaving(self.0.clone())
    }
}

impl<K, V> Lifecycle<K, V> for Leaving<K, V> {
    type RequestState = ();

    fn before_evict(&self, (): &mut (), key: &K, value: &mut V) {
        if let Some(told) = &self.0 {
            told(key, value);
        }
    }
}

impl<K: Weigh, V: Weigh> Weighter<K, V> for ByBytes {
    fn weight(&self, key: &K, value: &V) -> u64 {
        (key.bytes() + value.bytes()).max(1)
    }
}

/// Parts that have a lock of their own; an object has to fit into one.
const SHARDS: usize = 8;
/// Of a part, an object takes a quarter at most, so that it does not push out all others.
const SHARE: u64 = 4;
/// A guess at the size of what is kept: only sets how much is laid out at first.
const OBJECT_BYTES_LIKELY: u64 = 256 << 10;

impl<K: Eq + Hash + Clone + Weigh, V: Weigh + Clone> Memory<K, V> {
    /// Keeps at most this many bytes; `leaving` is told of each that makes room for others, and must
    /// neither block nor ask this tier anything.
    pub fn new(bytes_max: u64, leaving: Option<Told<K, V>>) -> Memory<K, V> {
        let items = usize::try_from(bytes_max / OBJECT_BYTES_LIKELY).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .weight_capacity(bytes_max)
            .estimated_items_capacity(items.clamp(64, 1 << 20))
            .build()
            .unwrap_or_else(|_| unreachable!("both capacities are set"));
        let cache = Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            Leaving(leaving),
        );
        Memory {
            object_bytes_max: cache.shard_capacity() / SHARE,
            cache,
        }
    }

    /// The most that one object may weigh.
    pub fn object_bytes_max(&self) -> u64 {
        self.object_bytes_max
    }

    /// What is kept for this key, and notes that it was asked for.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.cache.get(key)
    }

    /// Keeps it in place of what was there. What is too heavy is not kept.
    pub fn insert(&self, key: K, value: V) {
        if key.bytes() + value.bytes() <= self.object_bytes_max {
            self.cache.insert(key, value);
        } else {
            self.cache.remove(&key);
        }
    }

    /// Forgets it.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.cache.remove(key).map(|(_, value)| value)
    }

    /// Looks at all, one after the other, and forgets those for which `keep` says no.
    pub fn retain(&self, keep: impl Fn(&K, &V) -> bool) {
        self.cache.retain(keep);
    }

    /// Everything kept at about this moment.
    pub fn all(&self) -> Vec<(K, V)> {
        self.cache.iter().collect()
    }

    /// Bytes kept.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// Objects kept.
    pub fn len(&self) -> usize {
        self.cache.len()
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }
}

impl<K, V> fmt::Debug for Memory<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory(objects up to {} bytes)", self.object_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weigh for u32 {
        fn bytes(&self) -> u64 {
            4
        }
    }

    impl Weigh for Vec<u8> {
        fn bytes(&self) -> u64 {
            self.len() as u64
        }
    }

    #[test]
    fn it_never_holds_more_than_it_may() {
        let memory: Memory<u32, Vec<u8>> = Memory::new(1 << 20, None);
        for key in 0..4000 {
            memory.insert(key, vec![0; 1 + (key as usize * 37) % 9000]);
            assert!(memory.bytes() <= 1 << 20, "{} at {key}", memory.bytes());
        }
        assert!(
            memory.bytes() > 1 << 19,
            "it should be in use: {}",
            memory.bytes()
        );
        let each = |(key, value): &(u32, Vec<u8>)| key.bytes() + value.bytes();
        let summed: u64 = memory.all().iter().map(each).sum();
        assert_eq!(summed, memory.bytes());
    }

    #[test]
    fn who_leaves_is_told_and_who_is_replaced_or_removed_is_not() {
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = told.clone();
        let leaving: Told<u32, Vec<u8>> = Arc::new(move |key, _| note.lock().unwrap().push(*key));
        let memory = Memory::new(1 << 20, Some(leaving));
        memory.insert(0, vec![0; 100]);
        memory.insert(0, vec![1; 100]);
        memory.remove(&0);
        memory.retain(|_, _| false);
        assert!(told.lock().unwrap().is_empty());
        for key in 1..1000 {
            memory.insert(key, vec![0; 10_000]);
        }
        assert_eq!(told.lock().unwrap().len(), 999 - memory.len());
    }

    #[test]
    fn what_is_too_heavy_replaces_nothing_and_is_not_left_old() {
        let memory: Memory<u32, Vec<u8>> = Memory::new(1 << 20, None);
        let most = usize::try_from(memory.object_bytes_max()).unwrap() - 4;
        memory.insert(1, vec![1; most]);
        assert!(memory.get(&1).is_some());
        memory.insert(1, vec![2; most + 1]);
        assert_eq!(memory.get(&1), None);
        assert!(memory.is_empty());
    }
}
