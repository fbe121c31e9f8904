//! The thread that runs the posted workflows in order.

use super::manager::WorkflowManager;
use super::nbmp_resource_key::NbmpResourceKey;
use super::reporter::RunReporter;
use super::workflow_registry::WorkflowEntry;
use crate::experiment::{
    ExperimentError, ExperimentJob, ExperimentOutcome, ExperimentProgress, RecordFileError,
    execute_missing_runs,
};
use crate::link::{UnavailableError, check_links_available};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a workflow is in the state `in-error`.
#[derive(Debug, thiserror::Error)]
enum WorkflowError {
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    #[error(transparent)]
    Records(#[from] RecordFileError),
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error("{missing} of {runs} runs could not be measured{last}")]
    Incomplete {
        missing: usize,
        runs: usize,
        last: String,
    },
    #[error("internal error; see the log")]
    Panic,
}

/// Runs workflows until the manager stops.
pub(super) fn run_workflows(manager: &WorkflowManager) {
    while let Some((key, entry)) = manager.registry.next() {
        let reporter = RunReporter::start(&manager.registry, &key, &entry);
        let one = AssertUnwindSafe(|| run_workflow(manager, &key, &entry));
        let ended = catch_unwind(one).unwrap_or_else(|_| Err(WorkflowError::Panic));
        if let Err(error) = &ended {
            tracing::warn!(id = key.id, %error, "workflow failed");
        }
        let error = ended.err().map(|error| error.to_string());
        manager.registry.finish_workflow(&key, error);
        drop(reporter);
    }
}

fn run_workflow(
    manager: &WorkflowManager,
    key: &NbmpResourceKey,
    entry: &WorkflowEntry,
) -> Result<(), WorkflowError> {
    check_links_available()?;
    let prepared = &entry.prepared;
    let out = manager.workflow_folder(key);
    let plan = &prepared.plan;
    let runs = plan.rounds as usize * plan.arms.len();
    let mut before = manager.read_workflow_records(prepared)?;
    // Ignores runs of other scales, which the file can also contain.
    before.retain(|record| record.round < plan.rounds && plan.arms.contains(&record.arm));
    let discarded = before
        .iter()
        .filter(|record| record.discard_reason.is_some())
        .count();
    manager.registry.update_figures(key, |figures| {
        figures.runs = runs;
        figures.done = before.len() - discarded;
        figures.discarded = discarded;
    });
    let mut counted = before.len() - discarded;
    let mut last = None;
    let mut say = |progress: &ExperimentProgress| {
        let Some(record) = &progress.ended else {
            return;
        };
        counted += usize::from(record.discard_reason.is_none());
        last.clone_from(&record.discard_reason);
        manager
            .registry
            .update_figures(key, |figures| match &record.discard_reason {
                Some(_) => figures.discarded += 1,
                None => {
                    figures.done += 1;
                    figures.values.clone_from(&record.values);
                }
            });
    };
    let job = ExperimentJob {
        plan: plan.clone(),
        text: prepared.text.clone(),
        base: manager.settings.base.clone(),
        out,
        time_slice: None,
    };
    let outcome = execute_missing_runs(&job, None, &entry.stop, &mut say)?;
    match (outcome, last) {
        (ExperimentOutcome::Complete, last) if counted < runs => Err(WorkflowError::Incomplete {
            missing: runs - counted,
            runs,
            last: last.map(|reason| format!(": {reason}")).unwrap_or_default(),
        }),
        _ => Ok(()),
    }
}
