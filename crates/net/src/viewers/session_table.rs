//! The table of sessions: bounded in number and idle time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::session::{ReportChange, ViewerReport, ViewerSession};

/// Limit on a session id. CMCD limits it to 64 characters.
const ID_BYTES_MAX: usize = 64;

/// Sessions by id.
#[derive(Debug)]
pub(super) struct SessionTable {
    sessions_max: usize,
    idle_timeout: Duration,
    state: Mutex<TableState>,
}

#[derive(Debug, Default)]
struct TableState {
    sessions: HashMap<Arc<str>, TableEntry>,
    /// The ids in the order of their latest reports.
    by_age: BTreeMap<u64, Arc<str>>,
    /// Number of the next report.
    next: u64,
}

#[derive(Debug)]
struct TableEntry {
    session: ViewerSession,
    /// Key of `by_age`.
    age: u64,
}

/// The effect of a report on the table.
#[derive(Debug, Default)]
pub(super) struct TableChange {
    pub report: ReportChange,
    /// Sessions that were evicted for this one.
    pub evicted: u64,
}

impl SessionTable {
    pub(super) fn new(sessions_max: usize, idle_timeout: Duration) -> SessionTable {
        SessionTable {
            sessions_max: sessions_max.max(1),
            idle_timeout,
            state: Mutex::default(),
        }
    }

    /// Applies a report to its session. A report without a valid session id changes nothing.
    pub(super) fn apply(&self, report: &ViewerReport<'_>) -> TableChange {
        let id = report.data.text("sid").unwrap_or_default();
        if !(1..=ID_BYTES_MAX).contains(&id.len()) {
            return TableChange::default();
        }
        let mut state = self.lock();
        state.remove_idle(report.now, self.idle_timeout);
        let evicted = state.make_room(id, self.sessions_max);
        TableChange {
            report: state.apply(id, report),
            evicted,
        }
    }

    /// Returns the number of sessions.
    pub(super) fn count(&self, now: Instant) -> usize {
        let mut state = self.lock();
        state.remove_idle(now, self.idle_timeout);
        state.sessions.len()
    }

    /// Calls `read` with each session, the latest report first.
    pub(super) fn for_each(&self, now: Instant, mut read: impl FnMut(&str, &ViewerSession)) {
        let mut state = self.lock();
        state.remove_idle(now, self.idle_timeout);
        for id in state.by_age.values().rev() {
            if let Some(entry) = state.sessions.get(id) {
                read(id, &entry.session);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TableState {
    fn remove_idle(&mut self, now: Instant, idle_timeout: Duration) {
        while let Some(oldest) = self.by_age.first_entry() {
            let session = self.sessions.get(oldest.get()).map(|entry| &entry.session);
            let is_idle = session.is_none_or(|session| {
                now.saturating_duration_since(session.last_seen) > idle_timeout
            });
            if !is_idle {
                return;
            }
            self.sessions.remove(&oldest.remove());
        }
    }

    /// Evicts the session idle for longest if a new one does not fit. Returns the number of evicted
    /// sessions.
    fn make_room(&mut self, id: &str, sessions_max: usize) -> u64 {
        if self.sessions.contains_key(id) || self.sessions.len() < sessions_max {
            return 0;
        }
        match self.by_age.pop_first() {
            Some((_, oldest)) => u64::from(self.sessions.remove(&oldest).is_some()),
            None => 0,
        }
    }

    fn apply(&mut self, id: &str, report: &ViewerReport<'_>) -> ReportChange {
        let age = self.next;
        self.next += 1;
        let known = self.sessions.get_key_value(id).map(|(id, _)| id.clone());
        let id = known.unwrap_or_else(|| Arc::from(id));
        let entry = self.sessions.entry(id.clone());
        let entry = entry.or_insert_with(|| TableEntry {
            session: ViewerSession::new(report),
            age,
        });
        self.by_age.remove(&entry.age);
        entry.age = age;
        self.by_age.insert(age, id);
        entry.session.apply(report)
    }
}

#[cfg(test)]
mod tests;
