//! Titles by path: built once however many ask, kept while memory allows, built anew when their
//! files change.

use crate::error;
use crate::kept::Kept as Indexes;
use crate::stores::Stores;
use crate::title::{self, Making, Title};
use net::Error;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Arena, Key, Store};
use tokio::sync::Semaphore;

/// How long a failure is kept, so that a broken file that is asked for often costs little.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// What a failure weighs in memory, in bytes.
const FAILURE_BYTES: u64 = 1024;
/// Most titles built at the same time; more wait. One a core, within these bounds: more would be
/// no faster, and what each needs for a moment stays with the allocator (bench/memory.py).
const BUILDS: (usize, usize) = (2, 16);
/// The same over a network, where a build mostly waits.
const BUILDS_REMOTE: usize = 32;
/// Parts of the cache with a lock each. Few, since no title may be larger than a part.
const SHARDS: usize = 4;

/// From when on what is trusted for so long is looked at beside the requests for it.
pub(crate) fn soon(recheck: Duration) -> Duration {
    recheck * 3 / 4
}

/// All titles of a library.
pub(crate) struct Catalog {
    stores: Arc<Stores>,
    indexes: Indexes,
    /// Whether titles stay in memory; else each request builds its own.
    remember: bool,
    making: Making,
    /// How long a path is trusted to lead to the same files.
    recheck: Duration,
    kept: Cache<Key, Kept, Weigh>,
    /// Whether the next segment of a remote film is fetched before it is asked for.
    read_ahead: bool,
    builds: Arc<Semaphore>,
    built: AtomicU64,
    /// Where long texts about titles lie.
    texts: Arena,
    started: Instant,
}

/// What is known of a path.
#[derive(Clone)]
struct Kept {
    outcome: Result<Arc<Title>, Arc<Error>>,
    /// When the path was last looked at, in milliseconds since the catalog began.
    looked_ms: Arc<AtomicU64>,
    /// Whether it is looked at beside the requests.
    looking: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Weigh {
    most: u64,
}

impl Weighter<Key, Kept> for Weigh {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        let bytes = kept
            .outcome
            .as_ref()
            .map_or(FAILURE_BYTES, |title| title.bytes() as u64);
        // A title larger than its part of the cache shall be kept alone rather than never.
        bytes.clamp(1, self.most)
    }
}

impl Catalog {
    /// A catalog that takes `memory_bytes` at most; `None`: it remembers nothing, and each request
    /// reads what it needs anew.
    pub(crate) fn new(
        stores: Arc<Stores>,
        indexes: Indexes,
        making: Making,
        recheck: Duration,
        memory_bytes: Option<u64>,
    ) -> Catalog {
        let remember = memory_bytes.is_some();
        let memory_bytes = memory_bytes.unwrap_or(0);
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(1024)
            .weight_capacity(memory_bytes)
            .build()
            .unwrap_or_else(|_| unreachable!("all that the builder asks for is given"));
        let weigh = Weigh {
            most: (memory_bytes / SHARDS as u64).max(1),
        };
        let hash = DefaultHashBuilder::default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let builds = match stores.films().is_remote() {
            true => BUILDS_REMOTE,
            false => cores.clamp(BUILDS.0, BUILDS.1),
        };
        Catalog {
            stores,
            indexes,
            remember,
            making,
            recheck,
            kept: Cache::with_options(options, weigh, hash, Default::default()),
            read_ahead: false,
            builds: Arc::new(Semaphore::new(builds)),
            built: AtomicU64::new(0),
            texts: Arena::new(memory_bytes),
            started: Instant::now(),
        }
    }

    /// The library that the titles are of.
    pub(crate) fn store(&self) -> &Arc<Store> {
        self.stores.films()
    }

    /// Where the kernel can send long texts from without a copy, if they are kept at all.
    pub(crate) fn arena(&self) -> Option<&Arena> {
        self.remember.then_some(&self.texts)
    }

    /// Indexes on disk.
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// How many titles were built so far, those that failed included.
    pub(crate) fn built(&self) -> u64 {
        self.built.load(Relaxed)
    }

    /// Memory that titles take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// How many titles are in memory.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The title of a path, as its files are now (or were up to a second ago).
    pub(crate) async fn title(self: &Arc<Catalog>, key: &Key) -> Result<Arc<Title>, Error> {
        if !self.remember {
            return Box::pin(self.build_title(key)).await.map(Arc::new);
        }
        if let Some(kept) = self.kept.get(key)
            && self.holds(key, &kept).await
        {
            return kept.outcome.map_err(|error| Error::clone(&error));
        }
        Box::pin(self.build(key)).await
    }

    /// What is known of a title without a look at its files.
    pub(crate) fn known(&self, key: &Key) -> Option<Result<Arc<Title>, Arc<Error>>> {
        self.kept.peek(key).map(|kept| kept.outcome)
    }

    /// The same catalog, where the next segment of a remote film is fetched ahead.
    pub(crate) fn reading_ahead(self, read_ahead: bool) -> Catalog {
        Catalog { read_ahead, ..self }
    }

    /// Whether the next segment of a remote film is to be fetched before it is asked for.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.read_ahead
    }

    /// Whether films are encrypted: then nothing is given in the clear.
    pub(crate) fn seals(&self) -> bool {
        self.making.secret.is_some()
    }

    /// Whether files may lie below a title. Below a remote one that is named like a film none are
    /// looked for: each look would be a request.
    pub(crate) fn may_hold_files(&self, key: &Key) -> bool {
        !(self.store().is_remote() && title::is_media(key.name()))
    }

    /// The title again, after one of its files was found to be overwritten.
    pub(crate) async fn again(self: &Arc<Catalog>, old: &Arc<Title>) -> Result<Arc<Title>, Error> {
        self.forget(&old.key, old);
        self.title(&old.key).await
    }

    /// Whether what is kept may still be told.
    async fn holds(self: &Arc<Catalog>, key: &Key, kept: &Kept) -> bool {
        let now_ms = self.now_ms();
        let looked_ms = kept.looked_ms.load(Relaxed);
        let age = Duration::from_millis(now_ms.saturating_sub(looked_ms));
        let title = match &kept.outcome {
            Err(_) if age < FAILURE_KEPT => return true,
            Err(_) => {
                let same = |other: &Kept| Arc::ptr_eq(&other.looked_ms, &kept.looked_ms);
                self.kept.remove_if(key, same);
                return false;
            }
            Ok(_) if age < soon(self.recheck) => return true,
            Ok(title) => title.clone(),
        };
        if age < self.recheck {
            self.look_soon(kept, &title, now_ms);
            return true;
        }
        // One of those who ask looks; the others go on with what is there.
        if kept
            .looked_ms
            .compare_exchange(looked_ms, now_ms, Relaxed, Relaxed)
            .is_err()
        {
            return true;
        }
        let (stores, looked_at) = (self.stores.clone(), title.clone());
        let look = tokio::task::spawn_blocking(move || looked_at.is_current(&stores));
        let current = look.await.unwrap_or(false);
        if !current {
            self.forget(key, &title);
        }
        current
    }

    /// Looks beside the requests, before one has to wait for it: who asks all the time never does, if the
    /// answer comes in time.
    fn look_soon(self: &Arc<Self>, kept: &Kept, title: &Arc<Title>, now_ms: u64) {
        if kept.looking.swap(true, Relaxed) {
            return;
        }
        let (catalog, kept, title) = (self.clone(), kept.clone(), title.clone());
        tokio::task::spawn_blocking(move || {
            if title.is_current(&catalog.stores) {
                kept.looked_ms.fetch_max(now_ms, Relaxed);
            } else {
                catalog.forget(&title.key, &title);
            }
            kept.looking.store(false, Relaxed);
        });
    }

    fn forget(&self, key: &Key, old: &Arc<Title>) {
        let same = |kept: &Kept| {
            kept.outcome
                .as_ref()
                .is_ok_and(|title| Arc::ptr_eq(title, old))
        };
        self.kept.remove_if(key, same);
    }

    /// Builds a title, or waits for whoever builds it already.
    async fn build(self: &Arc<Catalog>, key: &Key) -> Result<Arc<Title>, Error> {
        let (catalog, key) = (self.clone(), key.clone());
        // A task of its own: the flight goes on when the one who began it goes away.
        let flight = tokio::spawn(async move {
            let make = catalog.make(&key);
            let kept = catalog.kept.get_or_insert_async(&key, async {
                Ok::<_, std::convert::Infallible>(make.await)
            });
            let Ok(kept) = kept.await;
            kept.outcome.map_err(|error| Error::clone(&error))
        });
        flight.await.unwrap_or_else(|e| Err(error::of_task(&e)))
    }

    async fn make(self: &Arc<Catalog>, key: &Key) -> Kept {
        let outcome = self.build_title(key).await;
        if let Err(error) = &outcome {
            tracing::warn!(title = key.as_str(), %error, "title cannot be served");
        }
        Kept {
            outcome: outcome.map(Arc::new).map_err(Arc::new),
            looked_ms: Arc::new(AtomicU64::new(self.now_ms())),
            looking: Arc::default(),
        }
    }

    async fn build_title(self: &Arc<Catalog>, key: &Key) -> Result<Title, Error> {
        // Never closed, so this only waits.
        let _permit = self.builds.clone().acquire_owned().await;
        let (catalog, key) = (self.clone(), key.clone());
        let build = move || {
            let built = Title::build(&catalog.stores, &catalog.indexes, &key, &catalog.making);
            // What is not there costs no index.
            if !matches!(&built, Err(error) if error.status == http::StatusCode::NOT_FOUND) {
                catalog.built.fetch_add(1, Relaxed);
            }
            built
        };
        let task = tokio::task::spawn_blocking(build);
        task.await.unwrap_or_else(|e| Err(error::of_task(&e)))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
