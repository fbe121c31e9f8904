//! Caches keys in memory, so that a key server receives few requests. While the key server fails,
//! cached keys are used for a limited time. Keys are never written to disk.

use super::key_error::KeyError;
use super::key_metrics::KeyMetrics;
use super::key_set::KeySet;
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::Key;

/// Maximum number of titles whose keys are cached.
const TITLES_MAX: usize = 10_000;
/// After a failed load, the old keys are used for this time before the next load. Otherwise, a slow
/// key server would delay each check of a title.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Caches the keys of titles.
pub(crate) struct KeyCache {
    entries: Cache<Key, CachedKeys>,
    /// Time for which keys are used without another request.
    max_age: Duration,
    /// Additional time for which cached keys are used while the key server fails.
    stale_if_error: Duration,
    metrics: KeyMetrics,
    /// Loads in progress, which concurrent requests for the same title share.
    loads: Mutex<HashMap<Key, Arc<SharedLoad>>>,
}

/// The result of a load. Concurrent requests wait for the result of the first request.
type SharedLoad = OnceLock<Result<Arc<KeySet>, KeyError>>;

#[derive(Clone)]
struct CachedKeys {
    keys: Arc<KeySet>,
    loaded: Instant,
    /// Time of the latest load, if it failed.
    failed: Option<Instant>,
}

impl KeyCache {
    /// Creates an empty cache.
    pub(crate) fn new(
        max_age: Duration,
        stale_if_error: Duration,
        metrics: KeyMetrics,
    ) -> KeyCache {
        KeyCache {
            entries: Cache::new(TITLES_MAX),
            max_age,
            stale_if_error,
            metrics,
            loads: Mutex::default(),
        }
    }

    /// Returns the keys of a title. If the keys are absent or too old, loads them with `load`. If
    /// `load` fails, the old keys are returned for a limited time. Concurrent calls for a title
    /// share one load and its error. Blocks.
    pub(crate) fn get_or_load(
        &self,
        title: &Key,
        load: impl FnOnce() -> Result<KeySet, KeyError>,
    ) -> Result<Arc<KeySet>, KeyError> {
        if let Some(keys) = self.find_usable_keys(title) {
            return Ok(keys);
        }
        let shared = self.lock_loads().entry(title.clone()).or_default().clone();
        // Looks up the keys again, because another load may have finished since the first look-up.
        let load = || {
            self.find_usable_keys(title)
                .map_or_else(|| self.load_and_cache_keys(title, load), Ok)
        };
        let result = shared.get_or_init(load).clone();
        let mut loads = self.lock_loads();
        if loads
            .get(title)
            .is_some_and(|known| Arc::ptr_eq(known, &shared))
        {
            loads.remove(title);
        }
        result
    }

    /// Returns whether the keys of a title may be used without a request.
    pub(crate) fn has_usable_keys(&self, title: &Key) -> bool {
        self.find_usable_keys(title).is_some()
    }

    fn lock_loads(&self) -> MutexGuard<'_, HashMap<Key, Arc<SharedLoad>>> {
        self.loads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_usable_keys(&self, title: &Key) -> Option<Arc<KeySet>> {
        let cached = self.entries.get(title)?;
        self.can_use_cached_keys(&cached).then_some(cached.keys)
    }

    fn load_and_cache_keys(
        &self,
        title: &Key,
        load: impl FnOnce() -> Result<KeySet, KeyError>,
    ) -> Result<Arc<KeySet>, KeyError> {
        let cached = self.entries.get(title);
        match (load(), cached) {
            (Ok(keys), _) => {
                self.metrics.loaded.inc();
                let keys = Arc::new(keys);
                self.insert(title, keys.clone(), Instant::now(), None);
                Ok(keys)
            }
            (Err(error), Some(cached))
                if cached.loaded.elapsed() < self.max_age + self.stale_if_error =>
            {
                tracing::warn!(title = title.as_str(), %error, "cached keys are used");
                self.metrics.stale.inc();
                let failed = Some(Instant::now());
                self.insert(title, cached.keys.clone(), cached.loaded, failed);
                Ok(cached.keys)
            }
            (Err(error), _) => {
                self.metrics.failed.inc();
                Err(error)
            }
        }
    }

    fn can_use_cached_keys(&self, cached: &CachedKeys) -> bool {
        let age = cached.loaded.elapsed();
        let has_just_failed = cached
            .failed
            .is_some_and(|failed| failed.elapsed() < RETRY_AFTER);
        age < self.max_age || has_just_failed && age < self.max_age + self.stale_if_error
    }

    fn insert(&self, title: &Key, keys: Arc<KeySet>, loaded: Instant, failed: Option<Instant>) {
        let entry = CachedKeys {
            keys,
            loaded,
            failed,
        };
        self.entries.insert(title.clone(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drm::content_key::ContentKey;
    use crate::drm::key_set::TitleContentKey;

    fn keys(byte: u8) -> KeySet {
        let key = TitleContentKey {
            key_id: [byte; 16],
            key: ContentKey::new([byte; 16]),
            explicit_iv: None,
            hdcp_level: None,
            systems: Vec::new(),
        };
        KeySet {
            keys: vec![key],
            ..KeySet::default()
        }
    }

    #[test]
    fn keys_are_loaded_once_and_survive_a_failure() {
        let title = Key::parse("a").unwrap();
        let metrics = net::metrics::Metrics::new();
        let counts = KeyMetrics::new(&metrics);
        let fresh = KeyCache::new(Duration::MAX / 4, Duration::ZERO, counts.clone());
        assert!(fresh.get_or_load(&title, || Err("down".into())).is_err());
        assert_eq!(*fresh.get_or_load(&title, || Ok(keys(1))).unwrap(), keys(1));
        let unused = || -> Result<KeySet, KeyError> { unreachable!("the keys are cached") };
        assert_eq!(*fresh.get_or_load(&title, unused).unwrap(), keys(1));
        let old = KeyCache::new(Duration::ZERO, Duration::MAX / 4, counts.clone());
        assert_eq!(*old.get_or_load(&title, || Ok(keys(1))).unwrap(), keys(1));
        assert_eq!(*old.get_or_load(&title, || Ok(keys(2))).unwrap(), keys(2));
        assert_eq!(
            *old.get_or_load(&title, || Err("down".into())).unwrap(),
            keys(2)
        );
        // Shortly after a failure, the key server receives no further request.
        assert_eq!(*old.get_or_load(&title, unused).unwrap(), keys(2));
        let strict = KeyCache::new(Duration::ZERO, Duration::ZERO, counts.clone());
        assert!(strict.get_or_load(&title, || Ok(keys(1))).is_ok());
        assert!(strict.get_or_load(&title, || Err("down".into())).is_err());
        let counts = [&counts.loaded, &counts.stale, &counts.failed].map(|count| count.get());
        assert_eq!(counts, [4, 1, 2]);
    }

    #[test]
    fn concurrent_requests_share_one_load_and_its_error() {
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
        let title = Key::parse("a").unwrap();
        let counts = KeyMetrics::new(&net::metrics::Metrics::new());
        let cache = KeyCache::new(Duration::MAX / 4, Duration::ZERO, counts);
        for is_down in [true, false] {
            let (loads, barrier) = (AtomicU32::new(0), std::sync::Barrier::new(8));
            let load = || {
                loads.fetch_add(1, SeqCst);
                // Gives the other threads time to reach this load, so that they wait for its
                // result.
                std::thread::sleep(Duration::from_secs(1));
                match is_down {
                    true => Err("down".into()),
                    false => Ok(keys(1)),
                }
            };
            let load_concurrently = || {
                barrier.wait();
                cache.get_or_load(&title, load).is_err()
            };
            let results = std::thread::scope(|scope| {
                let threads = [(); 8].map(|()| scope.spawn(load_concurrently));
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!((loads.into_inner(), results), (1, [is_down; 8]));
            assert!(cache.lock_loads().is_empty());
        }
    }
}
