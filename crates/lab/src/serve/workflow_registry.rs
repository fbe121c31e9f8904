//! The posted workflows and their states.

use super::nbmp_resource_key::NbmpResourceKey;
use super::prepare::PreparedWorkflow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A state of the NBMP life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkflowState {
    /// Queued.
    Instantiated,
    /// Not started, stopped, or finished.
    Idle,
    Running,
    /// Failed. [`WorkflowEntry`] contains the reason.
    InError,
    Destroyed,
}

impl WorkflowState {
    pub(super) fn name(self) -> &'static str {
        match self {
            WorkflowState::Instantiated => "instantiated",
            WorkflowState::Idle => "idle",
            WorkflowState::Running => "running",
            WorkflowState::InError => "in-error",
            WorkflowState::Destroyed => "destroyed",
        }
    }
}

/// Figures of a workflow's runs.
#[derive(Debug, Clone, Default)]
pub(super) struct RunFigures {
    /// Number of runs in the plan, for all arms and rounds.
    pub(super) runs: usize,
    pub(super) done: usize,
    pub(super) discarded: usize,
    /// Quantities of the last run that was not discarded.
    pub(super) values: BTreeMap<String, f64>,
    /// Number of reports that could not be delivered.
    pub(super) reports_lost: usize,
}

#[derive(Debug, Clone)]
pub(super) struct WorkflowEntry {
    pub(super) prepared: Arc<PreparedWorkflow>,
    pub(super) state: WorkflowState,
    pub(super) why: Option<String>,
    pub(super) figures: RunFigures,
    pub(super) stop: Arc<AtomicBool>,
    /// Sequence number of the workflow, in the order in which workflows were posted.
    pub(super) number: u64,
}

/// The reason why an operation is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegistryError {
    /// The identifier is in use.
    AlreadyExists,
    /// The maximum number of workflows is reached, or the manager is stopping.
    AtCapacity,
    NotFound,
    /// The workflow is running and must be stopped first.
    StillRunning,
}

#[derive(Debug, Default)]
struct RegistryState {
    entries: BTreeMap<NbmpResourceKey, WorkflowEntry>,
    queue: VecDeque<NbmpResourceKey>,
    running: Option<NbmpResourceKey>,
    ending: bool,
    posted: u64,
}

/// All posted workflows.
#[derive(Debug)]
pub(super) struct WorkflowRegistry {
    inner: Mutex<RegistryState>,
    changed: Condvar,
    max: usize,
}

impl WorkflowRegistry {
    pub(super) fn new(max: usize) -> WorkflowRegistry {
        WorkflowRegistry {
            inner: Mutex::default(),
            changed: Condvar::new(),
            max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a workflow. Returns the number of workflows that run before the new workflow, or 0 if
    /// the new workflow is not queued.
    pub(super) fn add_workflow(&self, prepared: PreparedWorkflow) -> Result<usize, RegistryError> {
        let mut inner = self.lock();
        let key = prepared.key();
        if inner.entries.contains_key(&key) {
            return Err(RegistryError::AlreadyExists);
        }
        if inner.entries.len() >= self.max || inner.ending {
            return Err(RegistryError::AtCapacity);
        }
        inner.posted += 1;
        let before = inner.queue.len() + usize::from(inner.running.is_some());
        let starts = prepared.starts;
        let entry = WorkflowEntry {
            prepared: Arc::new(prepared),
            state: WorkflowState::Idle,
            why: None,
            figures: RunFigures::default(),
            stop: Arc::default(),
            number: inner.posted,
        };
        inner.entries.insert(key.clone(), entry);
        if starts {
            inner.enqueue_workflow(&key);
        }
        self.changed.notify_all();
        Ok(if starts { before } else { 0 })
    }

    pub(super) fn find_entry(&self, key: &NbmpResourceKey) -> Result<WorkflowEntry, RegistryError> {
        self.lock()
            .entries
            .get(key)
            .cloned()
            .ok_or(RegistryError::NotFound)
    }

    /// Returns all workflows or all tasks, in the order in which they were posted.
    pub(super) fn list_workflows_or_tasks(&self, tasks: bool) -> Vec<WorkflowEntry> {
        let inner = self.lock();
        let of_kind = inner.entries.iter().filter(|(key, _)| key.is_task == tasks);
        let mut all: Vec<WorkflowEntry> = of_kind.map(|(_, entry)| entry.clone()).collect();
        all.sort_by_key(|entry| entry.number);
        all
    }

    /// Queues a workflow, unless it is already queued or running.
    pub(super) fn enqueue_unless_active(
        &self,
        key: &NbmpResourceKey,
    ) -> Result<WorkflowEntry, RegistryError> {
        let mut inner = self.lock();
        let state = inner.entries.get(key).ok_or(RegistryError::NotFound)?.state;
        if matches!(state, WorkflowState::Idle | WorkflowState::InError) {
            inner.enqueue_workflow(key);
            self.changed.notify_all();
        }
        inner
            .entries
            .get(key)
            .cloned()
            .ok_or(RegistryError::NotFound)
    }

    /// Removes a workflow from the queue. If the workflow is running, stops it and waits until it
    /// has ended.
    pub(super) fn stop_workflow(
        &self,
        key: &NbmpResourceKey,
    ) -> Result<WorkflowEntry, RegistryError> {
        let inner = self.stop_and_wait(key)?;
        inner
            .entries
            .get(key)
            .cloned()
            .ok_or(RegistryError::NotFound)
    }

    /// Stops a workflow, and waits until it is neither running nor queued. If the workflow is
    /// restarted meanwhile, stops it again. Returns the locked state.
    fn stop_and_wait(
        &self,
        key: &NbmpResourceKey,
    ) -> Result<MutexGuard<'_, RegistryState>, RegistryError> {
        let mut inner = self.lock();
        loop {
            inner.queue.retain(|other| other != key);
            let runs = inner.running.as_ref() == Some(key);
            let entry = inner.entries.get_mut(key).ok_or(RegistryError::NotFound)?;
            entry.stop.store(true, Ordering::Relaxed);
            if entry.state == WorkflowState::Instantiated {
                entry.state = WorkflowState::Idle;
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

    /// Replaces the workflow that has the same identifier. If the document differs from the old
    /// document, `clear` moves the old results away. No run can start meanwhile, because the
    /// registry is locked.
    pub(super) fn replace_workflow(
        &self,
        prepared: PreparedWorkflow,
        clear: impl FnOnce(),
    ) -> Result<WorkflowEntry, RegistryError> {
        let mut inner = self.lock();
        let key = prepared.key();
        if inner.running.as_ref() == Some(&key) {
            return Err(RegistryError::StillRunning);
        }
        let starts = prepared.starts;
        inner.queue.retain(|other| *other != key);
        let entry = inner.entries.get_mut(&key).ok_or(RegistryError::NotFound)?;
        if entry.prepared.text != prepared.text {
            clear();
        }
        entry.prepared = Arc::new(prepared);
        entry.state = WorkflowState::Idle;
        entry.why = None;
        entry.figures = RunFigures::default();
        if starts {
            inner.enqueue_workflow(&key);
        }
        self.changed.notify_all();
        inner
            .entries
            .get(&key)
            .cloned()
            .ok_or(RegistryError::NotFound)
    }

    /// Stops and removes a workflow. `clear` moves the results away before the identifier can be
    /// used again.
    pub(super) fn stop_and_remove(
        &self,
        key: &NbmpResourceKey,
        clear: impl FnOnce(),
    ) -> Result<WorkflowEntry, RegistryError> {
        let mut inner = self.stop_and_wait(key)?;
        let mut entry = inner.entries.remove(key).ok_or(RegistryError::NotFound)?;
        clear();
        entry.state = WorkflowState::Destroyed;
        Ok(entry)
    }

    /// Waits until a workflow is queued, marks the next workflow as running, and returns this
    /// workflow. Returns `None` when the manager stops.
    pub(super) fn next(&self) -> Option<(NbmpResourceKey, WorkflowEntry)> {
        let mut inner = self.lock();
        loop {
            if inner.ending {
                return None;
            }
            let Some(key) = inner.queue.pop_front() else {
                inner = self
                    .changed
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(entry) = inner.entries.get_mut(&key) else {
                continue;
            };
            entry.state = WorkflowState::Running;
            let entry = entry.clone();
            inner.running = Some(key.clone());
            return Some((key, entry));
        }
    }

    /// Changes the figures of a workflow.
    pub(super) fn update_figures(
        &self,
        key: &NbmpResourceKey,
        change: impl FnOnce(&mut RunFigures),
    ) {
        if let Some(entry) = self.lock().entries.get_mut(key) {
            change(&mut entry.figures);
        }
    }

    /// Marks a workflow as failed if `why` contains a reason, and otherwise as idle.
    pub(super) fn finish_workflow(&self, key: &NbmpResourceKey, why: Option<String>) {
        let mut inner = self.lock();
        inner.running = None;
        if let Some(entry) = inner.entries.get_mut(key) {
            entry.state = if why.is_some() {
                WorkflowState::InError
            } else {
                WorkflowState::Idle
            };
            entry.why = why;
        }
        self.changed.notify_all();
    }

    /// Stops the running workflow, and prevents other workflows from starting.
    pub(super) fn stop_all(&self) {
        let mut inner = self.lock();
        inner.ending = true;
        inner.queue.clear();
        for entry in inner.entries.values() {
            entry.stop.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }
}

impl RegistryState {
    fn enqueue_workflow(&mut self, key: &NbmpResourceKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            // Creates a new stop flag, because the old flag stays set after a stop.
            entry.stop = Arc::default();
            entry.state = WorkflowState::Instantiated;
            entry.why = None;
            self.queue.push_back(key.clone());
        }
    }
}
