//! The state that all reads of a library share.

use super::endpoints::EndpointTable;
use super::latency_history::LatencyHistory;
use super::retry_budget::RetryBudget;
use super::{Options, ThreadHoldFactory};
use crate::pipe_pool::PipePool;
use crate::range_cache::RangeCache;
use crate::{Error, Key, Meter, ObjectVersion, RequestReason};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use upstream::ConnectionCounts;

/// Number of bytes that are fetched when an object is opened. The first read of an indexer needs
/// only these bytes.
pub(crate) const HEAD_BYTES: u64 = 64 << 10;
/// The shared state of all reads.
pub(crate) struct RemoteCore {
    pub(super) routes: EndpointTable,
    pub(super) cache: RangeCache<VersionedKey, Error>,
    pub(super) options: Options,
    pub(super) meter: Arc<Meter>,
    pub(super) connections: Arc<ConnectionCounts>,
    pub(super) latency: LatencyHistory,
    pub(super) retries: RetryBudget,
    pub(super) hedges: RetryBudget,
    pub(super) pipes: PipePool,
    /// Ranges that are being spliced.
    pub(super) spliced_ranges: Mutex<HashSet<(VersionedKey, Range<u64>)>>,
    pub(super) handle: Handle,
}

/// Identifies one version of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct VersionedKey(pub(super) Arc<(Key, ObjectVersion)>);

impl RemoteCore {
    /// Runs work on the storage threads and blocks until it is done.
    pub(super) fn run_blocking<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(trace::bind_trace(async move {
            // Ignores the error, which means that the caller has exited.
            let _ = sender.send(work.await);
        }));
        let ended = |_| Error::Broken("the storage threads have exited".into());
        receiver.recv().map_err(ended)?
    }

    /// Starts a fetch on the caller's runtime, so that no other thread must be woken for each part
    /// of the body. If the caller has no runtime, the fetch runs on the storage threads.
    pub(super) fn spawn_fetch(&self, fetch: impl Future<Output = ()> + Send + 'static) {
        let runtime = Handle::try_current().unwrap_or_else(|_| self.handle.clone());
        let guard = self
            .options
            .holder
            .as_ref()
            .map(ThreadHoldFactory::new_guard);
        runtime.spawn(trace::bind_trace(async move {
            fetch.await;
            drop(guard);
        }));
    }

    pub(super) fn lock_spliced_ranges(
        &self,
    ) -> MutexGuard<'_, HashSet<(VersionedKey, Range<u64>)>> {
        self.spliced_ranges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes that may still be reserved.
    pub(super) fn unreserved_bytes(&self) -> u64 {
        let bytes_max = self
            .options
            .memory_bytes
            .saturating_add(self.options.unsent_bytes);
        bytes_max.saturating_sub(self.cache.reserved_memory().reserved_bytes())
    }

    pub(super) async fn look_up(
        self: &Arc<RemoteCore>,
        key: &Key,
    ) -> Result<Option<ObjectVersion>, Error> {
        if key.is_root() {
            return Ok(None);
        }
        match self.fetch_version(key, RequestReason::Look).await {
            Ok(seen) => Ok(Some(*seen.comparable_version())),
            Err(Error::NotFound) => match self.list_at_most(key, "", 1).await {
                Ok(entries) if entries.is_empty() => Err(Error::NotFound),
                Ok(_) => Ok(None),
                Err(Error::Unlisted) => Err(Error::NotFound),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }
}
