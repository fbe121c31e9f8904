//! Objects that are read over a network from S3, GCS, Azure, or HTTP servers that support range
//! requests.
//!
//! [`RemoteObject::open_range_reader`] looks up ranges in the range cache. [`RemoteCore::open_stream`] fetches
//! each missing range with one request. `retry` chooses one of the [`endpoints`], and decides about
//! retries and hedged requests. `range_request` checks each response against the opened version.
//! `resuming_stream` requests the rest of an interrupted response.
//!
//! A separate runtime opens objects, lists folders and drives shared connections. These tasks
//! therefore continue when the calling worker thread exits.

mod aws_profile;
mod denial_remedies;
mod endpoints;
mod failure_class;
mod first_bytes;
mod latency_history;
mod list;
mod object;
mod object_version;
mod options;
mod probe;
mod range_reader;
mod range_request;
mod remote_core;
mod request_failure;
mod request_guard;
mod request_observer;
mod resuming_stream;
mod retry;
mod retry_budget;
mod splice;
mod storage_builder;
mod windowed_stream;

pub use object::RemoteObject;
pub use options::{KeyRoute, Options, WeightedEndpoint};
pub use range_reader::RangeReader;
pub(crate) use remote_core::HEAD_BYTES;
pub use request_observer::{CompletedRequest, RequestObserver, ThreadHoldFactory};
pub use splice::{SplicedData, SplicedRange};

use crate::http::ConnectionPool;
use crate::pipe_pool::PipePool;
use crate::range_cache::RangeCache;
use crate::{Error, FolderEntry, Key, Meter, ObjectVersion, RequestReason};
use endpoints::EndpointTable;
use latency_history::LatencyHistory;
use object_version::{ObservedVersion, PinnedVersion};
use remote_core::{RemoteCore, VersionedKey};
use retry_budget::RetryBudget;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;
use upstream::ConnectionCounts;

/// Maximum number of bytes that are fetched when an object is opened to be read as a whole. Opening
/// the object waits only for the first of these bytes.
pub(crate) const WHOLE_BYTES: u64 = 8 << 20;

/// A library in an object store.
pub struct Remote {
    location: String,
    core: Arc<RemoteCore>,
    runtime: Option<Runtime>,
}

impl Remote {
    /// Returns whether `source` is the URL of a remote library.
    pub fn is_remote_url(source: &str) -> bool {
        storage_builder::SCHEMES.iter().any(|scheme| {
            source
                .get(..scheme.len())
                .is_some_and(|s| s.eq_ignore_ascii_case(scheme))
        })
    }

    /// Creates a library without sending a request.
    pub(crate) fn new(source: &str, options: Options) -> Result<Remote, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("storage")
            .worker_threads(options.threads.max(1))
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start the storage threads: {error}"))?;
        let _entered = runtime.enter();
        let connections = Arc::new(ConnectionCounts::default());
        let pool = ConnectionPool::new(options.transport.clone(), connections.clone())?;
        let core = RemoteCore {
            routes: EndpointTable::new(source, &options, &pool)?,
            cache: RangeCache::new(options.memory_bytes, options.is_caching_suspended.clone()),
            meter: Arc::default(),
            connections,
            latency: LatencyHistory::default(),
            retries: RetryBudget::new(options.retry_share),
            hedges: RetryBudget::new(options.hedge_share),
            pipes: PipePool::new(options.pipes),
            spliced_ranges: Mutex::default(),
            handle: runtime.handle().clone(),
            options,
        };
        drop(_entered);
        Ok(Remote {
            location: source.trim_end_matches('/').to_owned(),
            core: Arc::new(core),
            runtime: Some(runtime),
        })
    }

    /// The URL without credentials.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Counts of requests.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.core.meter
    }

    /// Counts of connections.
    pub fn connection_counts(&self) -> &Arc<ConnectionCounts> {
        &self.core.connections
    }

    /// Bytes of memory that are reserved for ranges. These ranges are cached, being received, or
    /// not sent yet.
    pub fn reserved_bytes(&self) -> u64 {
        self.core.cache.reserved_memory().reserved_bytes()
    }

    /// The number of endpoints that are down. Endpoints that are reached through a route are not
    /// counted.
    pub fn endpoints_down(&self) -> usize {
        self.core.routes.down_count()
    }

    pub(crate) fn look_up(&self, key: &Key) -> Result<Option<ObjectVersion>, Error> {
        let key = key.clone();
        self.run_with_core(|core| async move { core.look_up(&key).await })
    }

    /// Opens an object with one request, which also fetches the object's first `head_bytes` bytes.
    pub(crate) fn open(
        &self,
        key: &Key,
        head_bytes: u64,
        reason: RequestReason,
    ) -> Result<Arc<RemoteObject>, Error> {
        let key = key.clone();
        self.run_with_core(
            |core| async move { RemoteObject::open(core, key, head_bytes, reason).await },
        )
    }

    pub(crate) fn open_declared_version(
        &self,
        key: &Key,
        declared: ObjectVersion,
    ) -> Arc<RemoteObject> {
        RemoteObject::from_declared_version(self.core.clone(), key.clone(), declared)
    }

    /// Requests the root of the library, to find out whether the library's server responds. Any
    /// HTTP response is a success. Blocks.
    ///
    /// # Errors
    /// [`Error::Slow`] or [`Error::Broken`] if there is no response, for example because of a DNS
    /// error, a refused connection or a TLS error.
    pub fn probe(&self) -> Result<(), Error> {
        self.run_with_core(|core| async move { core.probe().await })
    }

    pub(crate) fn list_folder(&self, key: &Key) -> Result<Vec<FolderEntry>, Error> {
        let key = key.clone();
        self.run_with_core(|core| async move { core.list_folder(&key).await })
    }

    pub(crate) fn list_at_most(
        &self,
        key: &Key,
        entries_max: usize,
    ) -> Result<Vec<FolderEntry>, Error> {
        let key = key.clone();
        self.run_with_core(|core| async move { core.list_at_most(&key, "", entries_max).await })
    }

    pub(crate) fn list_prefixed(&self, key: &Key, prefix: &str) -> Result<Vec<FolderEntry>, Error> {
        let (key, prefix) = (key.clone(), prefix.to_owned());
        self.run_with_core(|core| async move { core.list_prefixed(&key, &prefix).await })
    }

    fn run_with_core<T: Send + 'static, F>(
        &self,
        work: impl FnOnce(Arc<RemoteCore>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.core.run_blocking(work(self.core.clone()))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Does not wait for the threads to exit, because the caller may be an asynchronous task,
        // which must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
