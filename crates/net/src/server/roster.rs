//! Which connections are open: each worker's own list, that others may look at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::task::AbortHandle;

use crate::Watch;
use crate::conn::Shared;

/// A connection as its worker sees it. Weak, so that a socket closes when its task ends.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) shared: Weak<Shared>,
    pub(super) task: AbortHandle,
}

impl Entry {
    pub(super) fn live(&self) -> Option<(&Entry, Arc<Shared>)> {
        Some((self, self.shared.upgrade()?))
    }

    pub(super) fn cut(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.cut();
        }
        self.task.abort();
    }
}

/// A worker's connections. Locked by the worker, and for a moment by whoever looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Roster(Arc<Mutex<Vec<Entry>>>);

impl Roster {
    pub(super) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server's connections, to be looked at while it runs.
#[derive(Debug, Clone)]
pub struct Connections(pub(super) Vec<Roster>);

impl Connections {
    /// How many are open, and the youngest of them: at most `max`, as many of each worker.
    pub fn look(&self, max: usize) -> (usize, Vec<Watch>) {
        let each = max.div_ceil(self.0.len().max(1));
        let (mut open, mut found) = (0, Vec::new());
        for roster in &self.0 {
            let entries = roster.entries();
            open += entries.iter().filter(|e| !e.task.is_finished()).count();
            let live = entries.iter().rev().filter(|e| !e.task.is_finished());
            found.extend(live.take(each).map(|entry| Watch(entry.shared.clone())));
        }
        (open, found)
    }
}
