//! Converts an experiment in TOML to an NBMP workflow description and back without loss.
//!
//! `build_workflow.rs` turns a TOML table into a workflow. A key that has a field in NBMP becomes
//! this field. Other keys become parameters (`parameters.rs`). `extract_experiment.rs` turns a
//! workflow into a table. `build_workflow.rs` then builds a second workflow from this table.
//! `overlay.rs` stores the differences between the second and the given workflow in the key `nbmp`.
//! A round trip therefore loses nothing, not even members unknown to `extract_experiment.rs`.

mod build_workflow;
mod experiment_names;
mod extract_experiment;
mod flow_control_fields;
mod json_paths;
mod overlay;
mod parameters;

pub(super) use build_workflow::percent_encode;
pub(super) use extract_experiment::{is_convertible_assertion, is_place, percent_decode};
pub use json_paths::json_path_of_key;
pub(super) use parameters::read_parameters;
use serde_json::Value;
use toml::Table;

/// TOML key of the overlay, which stores the NBMP members that have no other key in TOML.
pub const REST: &str = "nbmp";
/// Name of the instance whose parameters are keys of the experiment itself, such as `rounds`.
pub(super) const EXPERIMENT: &str = "lab.experiment";
/// Identifiers (`general.id`) of the functions that only the lab has.
pub const OWN_FUNCTIONS: [&str; 4] = ["experiment", "command", "measure", "place"];
/// URL of the repository of the built-in functions.
pub const REPOSITORY: &str = "headwater:functions";

/// Converts an experiment to a workflow description. Does not validate the table, because the
/// document check does that.
pub fn to_workflow(experiment: &Table) -> Value {
    let mut own = experiment.clone();
    let rest = own.remove(REST);
    let built = build_workflow::build_workflow(&own);
    match rest {
        Some(rest) => overlay::apply_overlay(built, &rest),
        None => built,
    }
}

/// Converts a workflow description to an experiment's table. [`to_workflow`] converts the table
/// back to the same description.
pub fn to_experiment(workflow: &Value) -> Table {
    let mut table = extract_experiment::extract_experiment(workflow);
    if let Some(rest) = overlay::compute_overlay(&build_workflow::build_workflow(&table), workflow)
    {
        table.insert(REST.into(), rest);
    }
    table
}
