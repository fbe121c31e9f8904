//! Converts between an experiment's TOML and a workflow description without loss.
//!
//! `build.rs` turns a TOML table into a workflow. Each key becomes a field of NBMP if there is one,
//! otherwise parameters (`parameters.rs`). `extract.rs` turns a workflow into a table. A workflow
//! is then built from this table, and its differences from the given workflow are stored in the key
//! `nbmp` (`overlay.rs`). Therefore nothing is lost in a round trip, even members that `extract.rs`
//! does not know.

mod build;
mod extract;
mod json_paths;
mod link_values;
mod names;
mod overlay;
mod parameters;

pub(super) use extract::{is_place, is_understood};
pub use json_paths::find_json_path;
pub(super) use parameters::read_parameters;
use serde_json::Value;
use toml::Table;

/// The key of the members that only NBMP has.
pub const REST: &str = "nbmp";
/// The instance whose parameters belong to the experiment.
pub(super) const EXPERIMENT: &str = "lab.experiment";
/// Functions that the lab implements itself, by `general.id`.
pub const OWN_FUNCTIONS: [&str; 4] = ["experiment", "command", "measure", "place"];
/// Repository of the built-in functions.
pub const REPOSITORY: &str = "headwater:functions";

/// Converts an experiment to a workflow description. Accepts any table; the document check finds
/// its faults.
pub fn to_workflow(experiment: &Table) -> Value {
    let mut own = experiment.clone();
    let rest = own.remove(REST);
    let built = build::build_workflow(&own);
    match rest {
        Some(rest) => overlay::apply_overlay(built, &rest),
        None => built,
    }
}

/// Converts a workflow description to an experiment's table. [`to_workflow`] restores the same
/// description.
pub fn to_experiment(workflow: &Value) -> Table {
    let mut table = extract::extract_experiment(workflow);
    if let Some(rest) = overlay::find_difference(&build::build_workflow(&table), workflow) {
        table.insert(REST.into(), rest);
    }
    table
}
