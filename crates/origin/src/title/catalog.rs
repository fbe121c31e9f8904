//! The title catalog, which builds each title once, caches it while memory allows, and rebuilds it
//! when its files change.

use crate::error;
use crate::shard_capacity::entry_bytes_max;
use crate::title::file_names;
use crate::title::index_cache::IndexCache;
use crate::title::opened_title::{LibraryPackagingRules, Title, TitlePartsToLoad};
use crate::title::stores::MediaStores;
use crate::title::title_draft::TitleDraft;
use net::{Error, OverloadLevel};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Arena, Key, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Time for which a failure is cached, so that frequent requests for a broken file cost little.
const FAILURE_MAX_AGE: Duration = Duration::from_secs(1);
/// Weight of a cached failure without its path and texts, in bytes.
const FAILURE_BYTES: usize = 1024;
/// Minimum and maximum number of titles that are built in parallel. Within these limits, the number
/// equals the number of cores. A higher number would not be faster, but would take more memory. The
/// allocator retains memory that a build needs only briefly (bench/memory.py).
const BUILDS_MIN_MAX: (usize, usize) = (2, 16);
/// Number of titles that are built in parallel if the library is on a network. The number is
/// higher, because such a build mostly waits.
const BUILDS_REMOTE_MAX: usize = 32;
/// Number of shards of the cache. Each shard has its own lock. The number is small, because a title
/// should fit into one shard.
const SHARDS: usize = 4;
/// While memory is short, titles are evicted until they take 1/8 of the catalog's maximum memory. The
/// other titles stay cached, because a build of an evicted title takes memory, too.
const KEPT_SHARE: u64 = 8;

/// Returns the age at which an entry is checked in the background.
pub(crate) fn background_check_age(recheck: Duration) -> Duration {
    recheck * 3 / 4
}

/// Maximum number of unserved parts that are logged for one title.
const LEFT_OUT_LOGGED_MAX: usize = 16;

/// Logs the parts of a title that are not served.
fn log_left_out_parts(title: &Title) {
    for part in title.left_out.iter().take(LEFT_OUT_LOGGED_MAX) {
        tracing::info!(title = title.key.as_str(), "{part}");
    }
}

/// The kind of request for which a title is built.
#[derive(Debug, Clone, Copy)]
enum TitleBuildScope {
    /// Requests for manifests and all other resources except segments. The title must contain the
    /// captions, because manifests announce them.
    Manifests,
    Segments,
}

/// The titles of a library.
pub(crate) struct Catalog {
    stores: Arc<MediaStores>,
    index_cache: IndexCache,
    /// Builds indexes for segment requests if titles are not cached.
    segment_indexes: IndexCache,
    /// Whether titles are cached. Otherwise, each request builds the title that it needs.
    is_caching: bool,
    packaging_rules: LibraryPackagingRules,
    /// For this time after a check, a path is assumed to lead to the same files.
    recheck_after: Duration,
    entries: Cache<Key, CatalogEntry, CatalogWeigher>,
    /// Maximum weight of all entries.
    bytes_max: u64,
    /// Whether the next segment of a remote film is fetched in advance.
    read_ahead: bool,
    build_permits: Arc<Semaphore>,
    build_count: AtomicU64,
    /// Memory for long manifests.
    text_arena: Arena,
    started: Instant,
}

/// The title at a path, or the error with which the last build of this title failed.
#[derive(Clone)]
struct CatalogEntry {
    outcome: Result<Arc<Title>, Arc<Error>>,
    /// Time of the last check, in milliseconds since the catalog was created.
    checked_ms: Arc<AtomicU64>,
    /// Whether a background check is running.
    is_checking: Arc<AtomicBool>,
    /// Whether text that could not be read is being read again.
    is_retrying: Arc<AtomicBool>,
    /// Whether the last check of the files failed.
    has_check_failed: Arc<AtomicBool>,
}

/// A flag that is set while a task runs. The flag is cleared when this value is dropped, also if
/// the task panics. Otherwise, the task would never be started again.
struct RunningTaskFlag(Arc<AtomicBool>);

impl RunningTaskFlag {
    /// Sets the flag. Returns `None` if the flag is already set.
    fn try_set(flag: &Arc<AtomicBool>) -> Option<RunningTaskFlag> {
        let is_running = flag.swap(true, Relaxed);
        (!is_running).then(|| RunningTaskFlag(flag.clone()))
    }
}

impl Drop for RunningTaskFlag {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

#[derive(Clone)]
struct CatalogWeigher {
    bytes_max: u64,
}

impl Weighter<Key, CatalogEntry> for CatalogWeigher {
    fn weight(&self, key: &Key, entry: &CatalogEntry) -> u64 {
        let bytes = match &entry.outcome {
            Ok(title) => title.memory_bytes(),
            // Clients choose the paths of failures, so the length of the path counts.
            Err(error) => {
                let detail = error.detail.as_ref().map_or(0, String::len);
                FAILURE_BYTES + key.as_str().len() + error.context.len() + detail
            }
        };
        // The weight of a title is limited to the largest weight that a shard accepts. A title that
        // is larger than a shard is therefore still cached, and replaces other entries of the
        // shard.
        (bytes as u64).clamp(1, self.bytes_max)
    }
}

impl Catalog {
    /// Creates a catalog of at most `memory_bytes`. With `None`, nothing is cached, and each
    /// request builds the title that it needs.
    pub(crate) fn new(
        stores: Arc<MediaStores>,
        indexes: IndexCache,
        rules: LibraryPackagingRules,
        recheck: Duration,
        memory_bytes: Option<u64>,
    ) -> Catalog {
        let is_caching = memory_bytes.is_some();
        let memory_bytes = memory_bytes.unwrap_or(0);
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(1024)
            .weight_capacity(memory_bytes)
            .build()
            .unwrap_or_else(|_| unreachable!("all required options are set"));
        let weigh = CatalogWeigher {
            bytes_max: entry_bytes_max(memory_bytes, SHARDS),
        };
        let hash = DefaultHashBuilder::default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let builds = match stores.library().is_remote() {
            true => BUILDS_REMOTE_MAX,
            false => cores.clamp(BUILDS_MIN_MAX.0, BUILDS_MIN_MAX.1),
        };
        Catalog {
            stores,
            index_cache: indexes,
            segment_indexes: IndexCache::without_captions(),
            is_caching,
            packaging_rules: rules,
            recheck_after: recheck,
            entries: Cache::with_options(options, weigh, hash, Default::default()),
            bytes_max: memory_bytes,
            read_ahead: false,
            build_permits: Arc::new(Semaphore::new(builds)),
            build_count: AtomicU64::new(0),
            text_arena: Arena::new(memory_bytes),
            started: Instant::now(),
        }
    }

    /// Returns the library that contains the titles.
    pub(crate) fn library(&self) -> &Arc<Store> {
        self.stores.library()
    }

    /// Returns the library and all other stores that media is read from.
    pub(crate) fn stores(&self) -> &MediaStores {
        &self.stores
    }

    /// Returns the arena for long manifests, if manifests are cached.
    pub(crate) fn arena(&self) -> Option<&Arena> {
        self.is_caching.then_some(&self.text_arena)
    }

    /// Returns the index cache.
    pub(crate) fn index_cache(&self) -> &IndexCache {
        &self.index_cache
    }

    /// Returns the number of title builds so far, including failed builds.
    pub(crate) fn build_count(&self) -> u64 {
        self.build_count.load(Relaxed)
    }

    /// Returns the memory that cached titles occupy, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// While memory is short, each call evicts a sixteenth of the cached bytes, until they take
    /// 1/[`KEPT_SHARE`] of the maximum. New titles are still cached, because otherwise each request would
    /// build its title, which takes more memory than the cached title.
    pub(crate) fn evict_if_memory_is_short(&self, level: OverloadLevel) {
        let (weight, kept) = (self.entries.weight(), self.bytes_max / KEPT_SHARE);
        if level == OverloadLevel::Normal || weight <= kept {
            return;
        }
        self.entries.set_capacity((weight / 16 * 15).max(kept));
        self.entries.set_capacity(self.bytes_max);
    }

    /// Returns the number of cached entries, including titles that cannot be served.
    pub(crate) fn cached_count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the current title of a path. The title's files were last checked within the recheck
    /// time.
    pub(crate) async fn load_title(self: &Arc<Catalog>, key: &Key) -> Result<Arc<Title>, Error> {
        if !self.is_caching {
            let build = self.build_uncached(key, TitleBuildScope::Manifests);
            return Box::pin(trace::in_span("index", build)).await.map(Arc::new);
        }
        if let Some(entry) = self.entries.get(key)
            && self.is_still_valid(key, &entry).await
        {
            return entry.outcome.map_err(|error| Error::clone(&error));
        }
        Box::pin(trace::in_span("index", self.build_once(key))).await
    }

    /// Returns the current title of a path for a segment request. If titles are not cached, the
    /// title is built without text and captions. Segments do not need text or captions, and finding
    /// captions reads media.
    pub(crate) async fn load_title_media(
        self: &Arc<Catalog>,
        key: &Key,
    ) -> Result<Arc<Title>, Error> {
        if self.is_caching {
            return self.load_title(key).await;
        }
        let build = self.build_uncached(key, TitleBuildScope::Segments);
        Box::pin(trace::in_span("index", build)).await.map(Arc::new)
    }

    /// Returns a cached title or failure without checking its files.
    pub(crate) fn peek_title(&self, key: &Key) -> Option<Result<Arc<Title>, Arc<Error>>> {
        self.entries.peek(key).map(|entry| entry.outcome)
    }

    /// Sets whether the next segment of a remote film is fetched in advance.
    pub(crate) fn with_read_ahead(self, read_ahead: bool) -> Catalog {
        Catalog { read_ahead, ..self }
    }

    /// Returns whether the next segment of a remote film is fetched in advance.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.read_ahead
    }

    /// Returns whether the film at a path is encrypted. If so, the film is not served as an
    /// unencrypted file.
    pub(crate) fn encrypts_title(&self, path: &Key) -> bool {
        self.packaging_rules.master_secret.is_some() || self.is_protecting(path)
    }

    /// Returns whether the film at a path is protected with Common Encryption.
    pub(crate) fn is_protecting(&self, path: &Key) -> bool {
        let drm = self.packaging_rules.drm.as_ref();
        drm.is_some_and(|drm| drm.policy_of(path).is_some())
    }

    /// Returns whether static files may exist below a title. Returns `false` for a remote title
    /// that is named like a film, because each look-up would cost a request.
    pub(crate) fn may_contain_static_files(&self, key: &Key) -> bool {
        !(self.library().is_remote() && file_names::is_media(key.name()))
    }

    /// Loads a title again after one of its files was found overwritten.
    pub(crate) async fn reload_title(
        self: &Arc<Catalog>,
        old: &Arc<Title>,
    ) -> Result<Arc<Title>, Error> {
        self.remove_version(&old.key, old);
        self.load_title(&old.key).await
    }

    /// Returns whether an entry may still be used.
    async fn is_still_valid(self: &Arc<Catalog>, key: &Key, entry: &CatalogEntry) -> bool {
        let now_ms = self.now_ms();
        let last_checked_ms = entry.checked_ms.load(Relaxed);
        let age = Duration::from_millis(now_ms.saturating_sub(last_checked_ms));
        let title = match &entry.outcome {
            Err(_) if age < FAILURE_MAX_AGE => return true,
            Err(_) => {
                let same = |other: &CatalogEntry| Arc::ptr_eq(&other.checked_ms, &entry.checked_ms);
                self.entries.remove_if(key, same);
                return false;
            }
            Ok(_) if age < background_check_age(self.recheck_after) => return true,
            Ok(title) => title.clone(),
        };
        if age < self.recheck_after {
            self.refresh_in_background(entry, &title, now_ms);
            return true;
        }
        // One request checks the title. Other requests use the entry in the meantime.
        if entry
            .checked_ms
            .compare_exchange(last_checked_ms, now_ms, Relaxed, Relaxed)
            .is_err()
        {
            return true;
        }
        self.check_title(entry, &title).await
    }

    /// Checks whether text that the storage could not deliver can be read now. If the text can be
    /// read, removes the title, so that the next request builds the title again. The check runs in
    /// the background, because the storage may still be slow.
    fn retry_text_in_background(self: &Arc<Self>, entry: &CatalogEntry, title: &Arc<Title>) {
        if !title.has_unread_text() {
            return;
        }
        let Some(running) = RunningTaskFlag::try_set(&entry.is_retrying) else {
            return;
        };
        let (catalog, title) = (self.clone(), title.clone());
        tokio::task::spawn_blocking(move || {
            let _running = running;
            if title.can_read_more_text(&catalog.stores) {
                catalog.remove_version(&title.key, &title);
            }
        });
    }

    /// Checks a title early and in the background, so that no request must wait for the check.
    fn refresh_in_background(
        self: &Arc<Self>,
        entry: &CatalogEntry,
        title: &Arc<Title>,
        now_ms: u64,
    ) {
        let Some(running) = RunningTaskFlag::try_set(&entry.is_checking) else {
            return;
        };
        let (catalog, entry, title) = (self.clone(), entry.clone(), title.clone());
        tokio::spawn(async move {
            let _running = running;
            if catalog.check_title(&entry, &title).await {
                entry.checked_ms.fetch_max(now_ms, Relaxed);
            }
        });
    }

    /// Removes a title if its files or keys have changed. Returns whether the title may still be
    /// used.
    ///
    /// The blocking thread removes the title, so that the result of the check is not lost if the
    /// client disconnects.
    async fn check_title(self: &Arc<Catalog>, entry: &CatalogEntry, title: &Arc<Title>) -> bool {
        let key_load = self.try_acquire_key_load(&title.key);
        let (catalog, entry, title) = (self.clone(), entry.clone(), title.clone());
        let check = move || {
            // The keys are not checked this time if too many titles are waiting for the key server.
            let is_current = catalog.has_same_files(&entry, &title)
                && (key_load.is_err() || catalog.has_same_keys(&title));
            match is_current {
                true => catalog.retry_text_in_background(&entry, &title),
                false => catalog.remove_version(&title.key, &title),
            }
            is_current
        };
        let checked = tokio::task::spawn_blocking(check);
        checked.await.unwrap_or(false)
    }

    /// Returns whether a title still has the same files. Returns `true` if the storage fails,
    /// because the title could not be built again either, and reads of the media verify its
    /// version. Blocks the thread.
    fn has_same_files(&self, entry: &CatalogEntry, title: &Title) -> bool {
        let found = title.has_unchanged_files(&self.stores);
        let had_failed = entry.has_check_failed.swap(found.is_err(), Relaxed);
        found.unwrap_or_else(|error| {
            // A title is checked every few seconds, so only the first failure in a row is logged.
            if !had_failed {
                let cause = error.operator_message();
                let title = title.key.as_str();
                tracing::warn!(title, cause, "cannot check title; it stays cached");
            }
            true
        })
    }

    /// Returns whether a title has the keys that its source currently provides. Blocks the thread.
    fn has_same_keys(&self, title: &Title) -> bool {
        match (&self.packaging_rules.drm, &title.drm) {
            (Some(library), Some(drm)) => {
                let policy = library.policy_of(&title.key);
                policy.is_some_and(|policy| policy.is_title_drm_current(&title.key, drm))
            }
            _ => true,
        }
    }

    fn remove_version(&self, key: &Key, old: &Arc<Title>) {
        let same = |entry: &CatalogEntry| {
            entry
                .outcome
                .as_ref()
                .is_ok_and(|title| Arc::ptr_eq(title, old))
        };
        self.entries.remove_if(key, same);
    }

    /// Builds a title, or waits for a build that is running.
    async fn build_once(self: &Arc<Catalog>, key: &Key) -> Result<Arc<Title>, Error> {
        let (catalog, key) = (self.clone(), key.clone());
        // The build runs in a separate task, so that the build continues if the client disconnects.
        let flight = tokio::spawn(trace::bind_trace(async move {
            let make = catalog.build_entry(&key);
            let entry = catalog.entries.get_or_insert_async(&key, async {
                Ok::<_, std::convert::Infallible>(make.await)
            });
            let Ok(entry) = entry.await;
            entry.outcome.map_err(|error| Error::clone(&error))
        }));
        flight.await.unwrap_or_else(|e| Err(error::from_task(&e)))
    }

    async fn build_entry(self: &Arc<Catalog>, key: &Key) -> CatalogEntry {
        let outcome = self.build_uncached(key, TitleBuildScope::Manifests).await;
        match &outcome {
            // Clients may request any path, so a missing title is not worth a warning.
            Err(error) if error.status == http::StatusCode::NOT_FOUND => {
                let cause = error.operator_message();
                tracing::debug!(title = key.as_str(), cause, "cannot serve title");
            }
            Err(error) => {
                let cause = error.operator_message();
                tracing::warn!(title = key.as_str(), status = %error.status, cause, "cannot serve title");
            }
            Ok(title) => log_left_out_parts(title),
        }
        CatalogEntry {
            outcome: outcome.map(Arc::new).map_err(Arc::new),
            checked_ms: Arc::new(AtomicU64::new(self.now_ms())),
            is_checking: Arc::default(),
            is_retrying: Arc::default(),
            has_check_failed: Arc::default(),
        }
    }

    async fn build_uncached(
        self: &Arc<Catalog>,
        key: &Key,
        purpose: TitleBuildScope,
    ) -> Result<Title, Error> {
        let built = self.build_in_steps(key, purpose).await;
        // A missing file is not counted as a build.
        if !matches!(&built, Err(error) if error.status == http::StatusCode::NOT_FOUND) {
            self.build_count.fetch_add(1, Relaxed);
        }
        built
    }

    /// Builds a title. Holds no build permit while keys are loaded, so that a slow key server
    /// delays only the titles whose keys it provides.
    async fn build_in_steps(
        self: &Arc<Catalog>,
        key: &Key,
        purpose: TitleBuildScope,
    ) -> Result<Title, Error> {
        // This permit limits the number of drafts in memory. Build permits are acquired later, so
        // that a task never waits for this permit while it holds a build permit. The permit moves
        // along with the draft, so that the permit is held until the draft is dropped, even if the
        // client disconnects.
        let key_load = self.acquire_key_load(key).await;
        let path = key.clone();
        let open = move |catalog: &Catalog| {
            let indexes = match purpose {
                TitleBuildScope::Manifests => &catalog.index_cache,
                TitleBuildScope::Segments => &catalog.segment_indexes,
            };
            let content = match purpose {
                TitleBuildScope::Manifests => TitlePartsToLoad::MediaAndText,
                TitleBuildScope::Segments => TitlePartsToLoad::Media,
            };
            let rules = &catalog.packaging_rules;
            let draft = TitleDraft::open_draft(&catalog.stores, indexes, &path, (rules, content))?;
            Ok((draft, key_load))
        };
        let (draft, key_load) = self.run_build_step(open).await?;
        let load = move |catalog: &Catalog| {
            let keys = draft.load_keys(catalog.packaging_rules.drm.as_ref())?;
            Ok((draft, keys, key_load))
        };
        let (draft, keys, key_load) = match self.is_protecting(key) {
            true => self.run_blocking(load).await?,
            false => load(self.as_ref())?,
        };
        let complete = move |catalog: &Catalog| {
            let _key_load = key_load;
            draft.complete_title(&catalog.stores, &catalog.packaging_rules, keys.as_ref())
        };
        self.run_build_step(complete).await
    }

    /// Waits for a permit to load the keys of a title. Returns `None` if the keys are already
    /// available.
    async fn acquire_key_load(&self, key: &Key) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed, so `acquire_owned` never fails.
        self.key_load_semaphore(key)?.acquire_owned().await.ok()
    }

    /// Like [`Catalog::acquire_key_load`], but returns an error instead of waiting.
    fn try_acquire_key_load(
        &self,
        key: &Key,
    ) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
        let permit = self
            .key_load_semaphore(key)
            .map(Semaphore::try_acquire_owned);
        permit.transpose()
    }

    /// Returns the semaphore for loading the keys of a title. Returns `None` if the keys are
    /// already available.
    fn key_load_semaphore(&self, key: &Key) -> Option<Arc<Semaphore>> {
        let policy = self.packaging_rules.drm.as_ref()?.policy_of(key)?;
        let may_wait = policy.may_wait_for_keys(key);
        may_wait.then(|| policy.key_loads.clone())
    }

    /// Runs a step of a build on a blocking thread, with a build permit. The thread holds the
    /// permit, because a step that runs does not stop if the client disconnects.
    async fn run_build_step<T: Send + 'static>(
        self: &Arc<Catalog>,
        step: impl FnOnce(&Catalog) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The semaphore is never closed, so `acquire_owned` never fails.
        let permit = self.build_permits.clone().acquire_owned().await;
        let step = move |catalog: &Catalog| {
            let _permit = permit;
            step(catalog)
        };
        self.run_blocking(step).await
    }

    async fn run_blocking<T: Send + 'static>(
        self: &Arc<Catalog>,
        step: impl FnOnce(&Catalog) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let catalog = self.clone();
        let run = trace::bind_trace_blocking(move || step(&catalog));
        let task = tokio::task::spawn_blocking(run);
        task.await.unwrap_or_else(|e| Err(error::from_task(&e)))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
pub(crate) mod tests;
