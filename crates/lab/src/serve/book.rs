//! What was posted, and how each of it stands.

use super::prepare::Prepared;
use crate::nbmp::Kind;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A state of NBMP's: where a workflow or task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for its turn.
    Instantiated,
    /// Stands still: not begun, stopped, or done.
    Idle,
    Running,
    /// It could not go on; why is told.
    InError,
    Destroyed,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Instantiated => "instantiated",
            State::Idle => "idle",
            State::Running => "running",
            State::InError => "in-error",
            State::Destroyed => "destroyed",
        }
    }
}

/// What is known of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Runs in all.
    pub(super) runs: usize,
    pub(super) done: usize,
    pub(super) thrown: usize,
    /// Of the last run that counted.
    pub(super) values: BTreeMap<String, f64>,
    /// Reports that nobody took.
    pub(super) reports_lost: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) prepared: Arc<Prepared>,
    pub(super) state: State,
    pub(super) why: Option<String>,
    pub(super) figures: Figures,
    pub(super) stop: Arc<AtomicBool>,
    /// In the order in which they came.
    pub(super) number: u64,
}

/// A workflow's or task's name.
pub(super) type Name = (bool, String);

/// Of an identifier; tasks and workflows have their own.
pub(super) fn name(kind: Kind, id: &str) -> Name {
    (kind == Kind::Task, id.to_owned())
}

/// Why something cannot be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Not {
    /// The identifier is taken.
    Free,
    /// There are as many as may be.
    Room,
    There,
    /// It runs, and must be stopped before.
    Still,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<Name, Entry>,
    queue: VecDeque<Name>,
    running: Option<Name>,
    ending: bool,
    posted: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Book {
    inner: Mutex<Inner>,
    changed: Condvar,
    max: usize,
}

impl Book {
    pub(super) fn new(max: usize) -> Book {
        Book {
            inner: Mutex::default(),
            changed: Condvar::new(),
            max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new one; gives back how many are before it.
    pub(super) fn add(&self, prepared: Prepared) -> Result<usize, Not> {
        let mut inner = self.lock();
        let name = prepared.name();
        if inner.entries.contains_key(&name) {
            return Err(Not::Free);
        }
        if inner.entries.len() >= self.max || inner.ending {
            return Err(Not::Room);
        }
        inner.posted += 1;
        let before = inner.queue.len() + usize::from(inner.running.is_some());
        let starts = prepared.starts;
        let entry = Entry {
            prepared: Arc::new(prepared),
            state: State::Idle,
            why: None,
            figures: Figures::default(),
            stop: Arc::default(),
            number: inner.posted,
        };
        inner.entries.insert(name.clone(), entry);
        if starts {
            inner.line_up(&name);
        }
        self.changed.notify_all();
        Ok(if starts { before } else { 0 })
    }

    pub(super) fn get(&self, name: &Name) -> Result<Entry, Not> {
        self.lock().entries.get(name).cloned().ok_or(Not::There)
    }

    /// All of a kind, in the order in which they came.
    pub(super) fn all(&self, tasks: bool) -> Vec<Entry> {
        let inner = self.lock();
        let of_kind = inner.entries.iter().filter(|((task, _), _)| *task == tasks);
        let mut all: Vec<Entry> = of_kind.map(|(_, entry)| entry.clone()).collect();
        all.sort_by_key(|entry| entry.number);
        all
    }

    /// Lines it up to be run, unless it is already.
    pub(super) fn start(&self, name: &Name) -> Result<Entry, Not> {
        let mut inner = self.lock();
        let state = inner.entries.get(name).ok_or(Not::There)?.state;
        if matches!(state, State::Idle | State::InError) {
            inner.line_up(name);
            self.changed.notify_all();
        }
        inner.entries.get(name).cloned().ok_or(Not::There)
    }

    /// Takes it out of the queue, or stops it and waits until it stands still.
    pub(super) fn stop(&self, name: &Name) -> Result<Entry, Not> {
        let inner = self.stopped(name)?;
        inner.entries.get(name).cloned().ok_or(Not::There)
    }

    /// The book, in which this one neither runs nor waits. It may have been begun again while it
    /// was waited for: then it is stopped again.
    fn stopped(&self, name: &Name) -> Result<MutexGuard<'_, Inner>, Not> {
        let mut inner = self.lock();
        loop {
            inner.queue.retain(|other| other != name);
            let runs = inner.running.as_ref() == Some(name);
            let entry = inner.entries.get_mut(name).ok_or(Not::There)?;
            entry.stop.store(true, Ordering::Relaxed);
            if entry.state == State::Instantiated {
                entry.state = State::Idle;
            }
            if !runs {
                return Ok(inner);
            }
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Something else under the same identifier. What another document measured is not this one's:
    /// `clear` takes it out of the way, while nothing can begin.
    pub(super) fn replace(&self, prepared: Prepared, clear: impl FnOnce()) -> Result<Entry, Not> {
        let mut inner = self.lock();
        let name = prepared.name();
        if inner.running.as_ref() == Some(&name) {
            return Err(Not::Still);
        }
        let starts = prepared.starts;
        inner.queue.retain(|other| *other != name);
        let entry = inner.entries.get_mut(&name).ok_or(Not::There)?;
        if entry.prepared.text != prepared.text {
            clear();
        }
        entry.prepared = Arc::new(prepared);
        entry.state = State::Idle;
        entry.why = None;
        entry.figures = Figures::default();
        if starts {
            inner.line_up(&name);
        }
        self.changed.notify_all();
        inner.entries.get(&name).cloned().ok_or(Not::There)
    }

    /// Stops it, waits until it stands still, and forgets it. `clear` takes what it has left out
    /// of the way, before its identifier is free.
    pub(super) fn remove(&self, name: &Name, clear: impl FnOnce()) -> Result<Entry, Not> {
        let mut inner = self.stopped(name)?;
        let mut entry = inner.entries.remove(name).ok_or(Not::There)?;
        clear();
        entry.state = State::Destroyed;
        Ok(entry)
    }

    /// What is to be run next, when there is something; none when the end was asked for.
    pub(super) fn next(&self) -> Option<(Name, Entry)> {
        let mut inner = self.lock();
        loop {
            if inner.ending {
                return None;
            }
            let Some(name) = inner.queue.pop_front() else {
                inner = self
                    .changed
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(entry) = inner.entries.get_mut(&name) else {
                continue;
            };
            entry.state = State::Running;
            let entry = entry.clone();
            inner.running = Some(name.clone());
            return Some((name, entry));
        }
    }

    /// Changes what is known of one that runs.
    pub(super) fn note(&self, name: &Name, change: impl FnOnce(&mut Figures)) {
        if let Some(entry) = self.lock().entries.get_mut(name) {
            change(&mut entry.figures);
        }
    }

    /// It stands still; `why` it is in error, if it is.
    pub(super) fn done(&self, name: &Name, why: Option<String>) {
        let mut inner = self.lock();
        inner.running = None;
        if let Some(entry) = inner.entries.get_mut(name) {
            entry.state = if why.is_some() {
                State::InError
            } else {
                State::Idle
            };
            entry.why = why;
        }
        self.changed.notify_all();
    }

    /// Stops what runs, and begins nothing more.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        inner.ending = true;
        inner.queue.clear();
        for entry in inner.entries.values() {
            entry.stop.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }
}

impl Inner {
    fn line_up(&mut self, name: &Name) {
        if let Some(entry) = self.entries.get_mut(name) {
            // One that was stopped keeps its flag; a new one is not stopped.
            entry.stop = Arc::default();
            entry.state = State::Instantiated;
            entry.why = None;
            self.queue.push_back(name.clone());
        }
    }
}
