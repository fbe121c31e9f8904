//! Lists of the open connections. Each worker has one list, which other threads may read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::task::AbortHandle;

use crate::WeakConnection;
use crate::conn::ConnectionState;

/// An open connection. The reference to the state is weak, so that the socket closes when the
/// connection's task ends.
#[derive(Debug)]
pub(super) struct RegisteredConnection {
    pub(super) shared: Weak<ConnectionState>,
    pub(super) task: AbortHandle,
}

impl RegisteredConnection {
    pub(super) fn as_live(&self) -> Option<(&RegisteredConnection, Arc<ConnectionState>)> {
        Some((self, self.shared.upgrade()?))
    }

    pub(super) fn cut_connection(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.close_immediately();
        }
        self.task.abort();
    }
}

/// The open connections of one worker. All accesses lock the list, and threads other than the
/// worker hold the lock only briefly.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionRegistry(Arc<Mutex<Vec<RegisteredConnection>>>);

impl ConnectionRegistry {
    pub(super) fn lock_entries(&self) -> MutexGuard<'_, Vec<RegisteredConnection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle for inspecting a server's connections while it runs.
#[derive(Debug, Clone)]
pub struct ConnectionInspector(pub(super) Vec<ConnectionRegistry>);

impl ConnectionInspector {
    /// Returns the number of open connections, and handles of the newest connections. Each worker
    /// contributes at most `max` divided by the number of workers, rounded up.
    pub fn list_connections(&self, max: usize) -> (usize, Vec<WeakConnection>) {
        let each = max.div_ceil(self.0.len().max(1));
        let (mut open, mut found) = (0, Vec::new());
        for registry in &self.0 {
            let entries = registry.lock_entries();
            open += entries.iter().filter(|e| !e.task.is_finished()).count();
            let live = entries.iter().rev().filter(|e| !e.task.is_finished());
            found.extend(
                live.take(each)
                    .map(|entry| WeakConnection(entry.shared.clone())),
            );
        }
        (open, found)
    }

    /// Returns the number of requests whose responses are not completely sent.
    pub(super) fn count_requests_in_flight(&self) -> u64 {
        let count_of = |registry: &ConnectionRegistry| -> u64 {
            let entries = registry.lock_entries();
            let live = entries.iter().filter_map(RegisteredConnection::as_live);
            live.map(|(_, shared)| u64::from(shared.requests_in_flight()))
                .sum()
        };
        self.0.iter().map(count_of).sum()
    }
}
