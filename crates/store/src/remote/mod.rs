//! Objects over a network: S3, GCS, Azure, HTTP servers with ranges.
//!
//! The way of a read: [`RemoteObject::parts`] asks the cache; what is missing is fetched by
//! [`Core::whole`], which asks for it in one request (`tries`: at which of the [`endpoints`], how
//! often, how long until a second one is sent beside it), checks every answer against what the
//! object was when it was opened (`call`), and asks for the rest again where one breaks off.
//!
//! All of it runs on a runtime of its own, so that connections outlive the worker that used them.

mod address;
mod budget;
mod call;
mod done;
mod endpoints;
mod head;
mod latency;
mod list;
mod object;
mod options;
mod parts;
mod passing;
mod profile;
mod seen;
mod straight;
mod stream;
mod tries;

pub use done::{Done, Holder, Watch};
pub use object::RemoteObject;
pub use options::{Options, Via, Weighted};
pub use parts::Parts;
pub use straight::{Came, Straight};

use crate::http::{Connections, Pool};
use crate::pipes::Pipes;
use crate::ranges::Cache;
use crate::{Entry, Error, Identity, Key, Meter, Reason};
use budget::Budget;
use endpoints::Routes;
use latency::Latency;
use seen::{Seen, State};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Handle, Runtime};

/// Bytes read of an object when it is opened, which is what an indexer asks for first.
pub(crate) const HEAD_BYTES: u64 = 64 << 10;
/// The same of an object that is wanted whole: they are taken as they come.
pub(crate) const WHOLE_BYTES: u64 = 8 << 20;

/// A library that an object store holds.
pub struct Remote {
    place: String,
    core: Arc<Core>,
    runtime: Option<Runtime>,
}

/// All that reading needs.
pub(crate) struct Core {
    routes: Routes,
    cache: Cache<Name, Error>,
    options: Options,
    meter: Arc<Meter>,
    connections: Arc<Connections>,
    latency: Latency,
    retries: Budget,
    hedges: Budget,
    pipes: Pipes,
    /// Ranges that pass straight through now.
    straight: Mutex<HashSet<(Name, Range<u64>)>>,
    handle: Handle,
}

/// One state of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(Arc<(Key, Identity)>);

impl Remote {
    /// Whether `source` is a URL of a remote library.
    pub fn is_remote(source: &str) -> bool {
        address::SCHEMES.iter().any(|scheme| {
            source
                .get(..scheme.len())
                .is_some_and(|s| s.eq_ignore_ascii_case(scheme))
        })
    }

    /// A library, nothing of which is looked at yet.
    pub(crate) fn new(source: &str, options: Options) -> Result<Remote, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("storage")
            .worker_threads(options.threads.max(1))
            .enable_all()
            .build()
            .map_err(|error| format!("threads for the storage: {error}"))?;
        let _entered = runtime.enter();
        let connections = Arc::new(Connections::default());
        let pool = Pool::new(options.transport.clone(), connections.clone())?;
        let core = Core {
            routes: Routes::new(source, &options, &pool)?,
            cache: Cache::new(options.memory_bytes),
            meter: Arc::default(),
            connections,
            latency: Latency::default(),
            retries: Budget::new(options.retry_share),
            hedges: Budget::new(options.hedge_share),
            pipes: Pipes::new(options.pipes),
            straight: Mutex::default(),
            handle: runtime.handle().clone(),
            options,
        };
        drop(_entered);
        Ok(Remote {
            place: source.trim_end_matches('/').to_owned(),
            core: Arc::new(core),
            runtime: Some(runtime),
        })
    }

    /// Its URL.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What has been asked of the storage, and what came.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.core.meter
    }

    /// Counts of connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.core.connections
    }

    /// Bytes of objects in memory, or on their way there: kept, or for whoever takes them.
    pub fn held_bytes(&self) -> u64 {
        self.core.cache.holding().bytes()
    }

    /// How many endpoints are taken to be down now.
    pub fn endpoints_down(&self) -> usize {
        self.core.routes.down()
    }

    pub(crate) fn look(&self, key: &Key) -> Result<Option<Identity>, Error> {
        self.run({
            let (core, key) = (self.core.clone(), key.clone());
            async move { core.look(&key).await }
        })
    }

    /// `head_bytes`: how much of it comes along.
    pub(crate) fn open(
        &self,
        key: &Key,
        head_bytes: u64,
        reason: Reason,
    ) -> Result<Arc<RemoteObject>, Error> {
        self.run({
            let (core, key) = (self.core.clone(), key.clone());
            async move { RemoteObject::open(core, key, head_bytes, reason).await }
        })
    }

    pub(crate) fn promise(&self, key: &Key, said: Identity) -> Arc<RemoteObject> {
        RemoteObject::promised(self.core.clone(), key.clone(), said)
    }

    pub(crate) fn list(&self, key: &Key) -> Result<Vec<Entry>, Error> {
        self.run({
            let (core, key) = (self.core.clone(), key.clone());
            async move { core.list(&key).await }
        })
    }

    pub(crate) fn list_first(&self, key: &Key, most: usize) -> Result<Vec<Entry>, Error> {
        self.run({
            let (core, key) = (self.core.clone(), key.clone());
            async move { core.list_first(&key, most).await }
        })
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.core.run(work)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Not waiting: whoever drops us may be a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Core {
    /// Runs on the storage's threads; blocks until it is done.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Nobody listens any more: nothing to be done about it.
            let _ = tell.send(work.await);
        });
        let ended = |_| Error::Broken("the storage's threads have ended".into());
        told.recv().map_err(ended)?
    }

    /// Begins a fetch on the runtime of whoever asks, who is to take its bytes: no other thread
    /// need be woken for each of them. Where there is none, on the storage's.
    fn spawn(&self, fetch: impl Future<Output = ()> + Send + 'static) {
        let here = Handle::try_current().unwrap_or_else(|_| self.handle.clone());
        let held = self.options.holder.as_ref().map(Holder::hold);
        here.spawn(async move {
            fetch.await;
            drop(held);
        });
    }

    fn straight(&self) -> MutexGuard<'_, HashSet<(Name, Range<u64>)>> {
        self.straight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes more may be held.
    fn room(&self) -> u64 {
        let most = self
            .options
            .memory_bytes
            .saturating_add(self.options.unsent_bytes);
        most.saturating_sub(self.cache.holding().bytes())
    }

    async fn look(self: &Arc<Core>, key: &Key) -> Result<Option<Identity>, Error> {
        if key.is_root() {
            return Ok(None);
        }
        match self.head(key, Reason::Look).await {
            Ok(seen) => Ok(Some(*seen.identity())),
            Err(Error::NotFound) => match self.list_first(key, 1).await {
                Ok(entries) if entries.is_empty() => Err(Error::NotFound),
                Ok(_) => Ok(None),
                Err(Error::Unlisted) => Err(Error::NotFound),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }
}
