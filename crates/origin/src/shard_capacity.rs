//! The largest weight that an entry of a sharded cache may have.

/// Returns the largest weight that a cache with this capacity and number of shards accepts. The
/// caches of `quick_cache` drop an entry that weighs more than 97 % of a shard. The limit of 90 %
/// leaves a reserve, because changes of the capacity round the limit of the shard.
pub(crate) fn entry_bytes_max(capacity_bytes: u64, shards: usize) -> u64 {
    (capacity_bytes / shards as u64 / 10 * 9).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_cache::sync::Cache;
    use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

    #[derive(Clone)]
    struct Weight(u64);

    impl Weighter<u32, ()> for Weight {
        fn weight(&self, _: &u32, (): &()) -> u64 {
            self.0
        }
    }

    /// Creates a cache in which each entry has the largest weight that a shard accepts.
    fn create_cache(capacity: u64) -> Cache<u32, (), Weight> {
        const SHARDS: usize = 4;
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(1024)
            .weight_capacity(capacity)
            .build()
            .unwrap();
        let weight = Weight(entry_bytes_max(capacity, SHARDS));
        let hash = DefaultHashBuilder::default();
        Cache::with_options(options, weight, hash, Default::default())
    }

    #[test]
    fn an_entry_of_the_largest_weight_is_cached() {
        for capacity in [4, 7, 40, 1000, 65_537, 1 << 20, 512 << 20] {
            let cache = create_cache(capacity);
            cache.insert(1, ());
            assert!(cache.contains_key(&1), "{capacity}");
        }
    }

    /// Each change of the capacity may reduce the limit of a shard by one byte. The reserve of a
    /// smaller cache is too small for this number of changes.
    #[test]
    fn an_entry_of_the_largest_weight_is_cached_after_changes_of_the_capacity() {
        for capacity in [1000, 65_537, 1 << 20, 512 << 20] {
            let cache = create_cache(capacity);
            for _ in 0..10 {
                cache.set_capacity(capacity / 8 * 7);
                cache.set_capacity(capacity);
            }
            cache.insert(1, ());
            assert!(cache.contains_key(&1), "{capacity}");
        }
    }
}
