//! Experiments as documents, modeled on MPEG NBMP (ISO/IEC 23090-8). A document describes media
//! sources, functions, links and sinks. Each combination of the variables' values is an arm. All
//! arms are repeated in interleaved rounds.
//!
//! Data flow: [`ExperimentDocument`] is the parsed document, [`check`](fn@check_document) finds its
//! faults, and [`RunPlan`] lists the arms. `run.rs` executes the rounds and reports progress.
//! `local_run.rs` executes one run. `deploy.rs` starts and removes everything that the run needs.
//! `placeholders.rs` and `shell_process.rs` turn the document's commands into processes.
//! `merge_measurements.rs` merges the results, and `disturbance_bounds.rs` discards disturbed
//! runs. Each run leaves a [`RunRecord`]. The [`report`](crate::report) is made from records alone,
//! so that a new question needs no new run.

mod arms;
mod built_in_servers_and_clients;
mod check;
mod common_failure;
mod compressed_records;
mod cpus;
mod deploy;
mod disturbance_bounds;
pub(crate) mod document;
mod document_fault;
mod experiment_error;
mod file_error;
mod health;
mod histograms;
mod local_run;
mod machine;
mod machine_noise;
mod merge_measurements;
mod placeholders;
mod portable_command;
mod programs;
mod progress;
mod quantity;
mod raw_functions_and_sinks;
mod record;
mod result_folder;
mod run;
mod run_error;
mod run_link;
mod run_processes;
mod run_sinks;
mod scalar_text;
mod series_and_histograms;
mod shell_process;
mod sink_output;
mod source;
mod time_slice;
mod versions;

pub(crate) use arms::fill_placeholders;
pub use arms::{Arm, RunPlan, UnknownScale};
pub use built_in_servers_and_clients::{
    BuiltInFunction, BuiltInFunctionError, built_in_functions, find_built_in_function,
};
pub use check::check_document;
pub use document::ExperimentDocument;
pub use document_fault::DocumentFault;
pub(crate) use experiment_error::ExperimentError;
pub use file_error::FileError;
pub(crate) use histograms::{add_histogram as add_counts, decode_histogram as counts};
pub use machine::MachineDescription;
pub(crate) use portable_command::portable_command_line;
pub(crate) use programs::find_missing_programs;
pub use progress::ExperimentProgress;
pub use record::{AgentRecord, HistogramRecord, RecordFileError, RunRecord};
#[cfg(feature = "nbmp")]
pub(crate) use result_folder::holds_results_of_document;
pub(crate) use run::{ExecutorConnector, ExperimentJob, ExperimentOutcome, execute_missing_runs};
#[cfg(feature = "nats")]
pub(crate) use run_error::RunError;
pub(crate) use scalar_text::scalar_text;

/// The items that agents and the controlling program need to execute a run.
#[cfg(feature = "nats")]
pub(crate) mod distributed {
    pub(crate) use super::check::starting_order;
    pub(crate) use super::deploy::DeployedRun;
    pub(crate) use super::machine_noise::{CpuTicks, MachineNoise};
    pub(crate) use super::merge_measurements::merge_measurements;
    pub(crate) use super::placeholders::{
        AgentShare, DEFAULT_PLACE, RunContext, place_name, place_or_default_if_unlinked,
    };
    pub(crate) use super::result_folder::DocumentAndOutputFolders;
    pub(crate) use super::run::RemoteExecutor;
    pub(crate) use super::run_sinks::{PartMeasurements, sink_timeout};
    pub(crate) use super::source::{SourceError, prepare_sources};
}
