//! Executes one run on this machine, from its deployment to the collection of its results.

use super::check::starting_order;
use super::deploy::DeployedRun;
use super::merge_measurements::merge_measurements;
use super::placeholders::RunContext;
use super::run_error::RunError;
use super::{ExperimentDocument, RunRecord};
use std::sync::atomic::AtomicBool;

/// Executes a run and fills in its record. When the function returns, all processes of the run have
/// ended and the folder of the run is removed.
///
/// # Errors
/// The run failed or was stopped.
pub(super) fn execute_locally(
    document: &ExperimentDocument,
    at: RunContext<'_>,
    record: &mut RunRecord,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let arm = record.arm.clone();
    let deployed = DeployedRun::deploy_network(document, &arm, at)?;
    for name in starting_order(document).unwrap_or_default() {
        deployed.start_function(name, stop)?;
    }
    let sinks: Vec<&str> = document.sink.keys().map(|n| n.get_ref().as_str()).collect();
    deployed.warm_up(&sinks, stop)?;
    let measured = deployed.run_sinks(&sinks, stop)?;
    drop(deployed);
    merge_measurements(document, &[measured], record)
}
