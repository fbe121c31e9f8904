//! The table of viewer sessions. The number of sessions and their idle time are limited.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::session::{ReportMetricValues, ViewerReport, ViewerSession};
use super::session_ages_by_network::SessionAgesByNetwork;
use super::viewer_class::{ViewerClass, ViewerClasses};

/// Maximum length of a session id, in bytes. CMCD limits session ids to 64 characters.
const ID_BYTES_MAX: usize = 64;

/// Viewer sessions by id.
#[derive(Debug)]
pub(super) struct ViewerSessionTable {
    sessions_max: usize,
    idle_timeout: Duration,
    classes: Arc<ViewerClasses>,
    state: Mutex<ViewerSessionTableState>,
}

#[derive(Debug, Default)]
struct ViewerSessionTableState {
    sessions: HashMap<Arc<str>, SessionEntry>,
    /// The session ids by age. The age is the sequence number of the session's latest report.
    by_age: BTreeMap<u64, Arc<str>>,
    by_network: SessionAgesByNetwork,
    /// Sequence number of the next report.
    next: u64,
}

#[derive(Debug)]
struct SessionEntry {
    session: ViewerSession,
    class: ViewerClass,
    /// Key of the session in `by_age`.
    age: u64,
}

/// The effect of a report on the table.
#[derive(Debug, Default)]
pub(super) struct ViewerSessionTableChange {
    pub report: ReportMetricValues,
    /// Class of the session's viewer.
    pub class: ViewerClass,
    /// Number of sessions that were evicted to make room for this session.
    pub evicted: u64,
}

impl ViewerSessionTable {
    pub(super) fn new(
        sessions_max: usize,
        idle_timeout: Duration,
        classes: ViewerClasses,
    ) -> ViewerSessionTable {
        ViewerSessionTable {
            classes: Arc::new(classes),
            sessions_max: sessions_max.max(1),
            idle_timeout,
            state: Mutex::default(),
        }
    }

    /// Applies a report to its session. A report without a valid session id changes nothing.
    pub(super) fn apply_report(&self, report: &ViewerReport<'_>) -> ViewerSessionTableChange {
        let id = report.data.string_value("sid").unwrap_or_default();
        if !(1..=ID_BYTES_MAX).contains(&id.len()) {
            return ViewerSessionTableChange::default();
        }
        let mut state = self.lock();
        state.remove_idle(report.now, self.idle_timeout);
        let evicted = state.make_room(id, self.sessions_max);
        let (report, class) = state.apply_report(id, report, &self.classes);
        ViewerSessionTableChange {
            report,
            class,
            evicted,
        }
    }

    /// Returns the classes of the viewers.
    pub(super) fn classes(&self) -> &Arc<ViewerClasses> {
        &self.classes
    }

    /// Returns the number of sessions of each class, in the order of the classes.
    pub(super) fn count_by_class(&self, now: Instant) -> Vec<u64> {
        let mut counts = vec![0; self.classes.all_classes().count()];
        let mut state = self.lock();
        state.remove_idle(now, self.idle_timeout);
        for entry in state.sessions.values() {
            if let Some(count) = counts.get_mut(self.classes.class_position(entry.class)) {
                *count += 1;
            }
        }
        counts
    }

    /// Returns the number of sessions.
    pub(super) fn count_open_sessions(&self, now: Instant) -> usize {
        let mut state = self.lock();
        state.remove_idle(now, self.idle_timeout);
        state.sessions.len()
    }

    /// Calls `read` for each session, with the session id and the class. Starts with the session
    /// that reported last.
    pub(super) fn for_each_session(
        &self,
        now: Instant,
        mut read: impl FnMut(&str, &ViewerSession, ViewerClass),
    ) {
        let mut state = self.lock();
        state.remove_idle(now, self.idle_timeout);
        for id in state.by_age.values().rev() {
            if let Some(entry) = state.sessions.get(id) {
                read(id, &entry.session, entry.class);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ViewerSessionTableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewerSessionTableState {
    fn remove_idle(&mut self, now: Instant, idle_timeout: Duration) {
        while let Some((age, id)) = self.by_age.first_key_value() {
            let session = self.sessions.get(id).map(|entry| &entry.session);
            let is_idle = session.is_none_or(|session| {
                now.saturating_duration_since(session.last_seen) > idle_timeout
            });
            if !is_idle {
                return;
            }
            self.remove(*age);
        }
    }

    /// Makes room for a new session if the table is full. Evicts the session that has been idle for
    /// the longest time in the network with the most sessions. If a client invents session ids,
    /// soon only sessions of its own network are evicted. Returns the number of evicted sessions.
    fn make_room(&mut self, id: &str, sessions_max: usize) -> u64 {
        if self.sessions.contains_key(id) || self.sessions.len() < sessions_max {
            return 0;
        }
        let evictable = self.by_network.find_evictable();
        evictable.map_or(0, |age| u64::from(self.remove(age)))
    }

    /// Returns whether the session existed.
    fn remove(&mut self, age: u64) -> bool {
        let id = self.by_age.remove(&age);
        let Some(removed) = id.and_then(|id| self.sessions.remove(&id)) else {
            return false;
        };
        self.by_network.remove(removed.session.network, age);
        true
    }

    fn apply_report(
        &mut self,
        id: &str,
        report: &ViewerReport<'_>,
        classes: &ViewerClasses,
    ) -> (ReportMetricValues, ViewerClass) {
        let age = self.next;
        self.next += 1;
        let known = self.sessions.get_key_value(id).map(|(id, _)| id.clone());
        let id = known.unwrap_or_else(|| Arc::from(id));
        let entry = self.sessions.entry(id.clone());
        let entry = entry.or_insert_with(|| SessionEntry {
            session: ViewerSession::new(report),
            class: ViewerClass::default(),
            age,
        });
        self.by_age.remove(&entry.age);
        self.by_network.remove(entry.session.network, entry.age);
        entry.age = age;
        self.by_age.insert(age, id);
        let change = entry.session.apply_report(report);
        self.by_network.insert(entry.session.network, age);
        entry.class = classes.classify(report.client, entry.session.title.as_deref());
        (change, entry.class)
    }
}

#[cfg(test)]
mod tests;
