//! Between an experiment's TOML and a workflow description: whatever either can say, the other
//! carries.
//!
//! A TOML table becomes a workflow by `build.rs`, where there is a field of NBMP's in it
//! (`names.rs` says what is named where), and else in parameters (`parameters.rs`). A workflow
//! becomes a table by `extract.rs`; then the table is built again, and what differs from the
//! workflow is kept in the table's `nbmp` (`rest.rs`). So nothing can be lost on the way there and
//! back, whatever `extract.rs` does not understand.

mod build;
mod extract;
mod flow;
mod names;
mod parameters;
mod places;
mod rest;

pub(super) use extract::{is_place, is_understood};
pub use places::place_of;
use serde_json::Value;
use toml::Table;

/// The key of what only NBMP can say.
pub const REST: &str = "nbmp";
/// The instance whose parameters are the experiment's own.
const EXPERIMENT: &str = "lab.experiment";
/// The functions that the lab itself stands for, by `general.id`.
pub const OWN_FUNCTIONS: [&str; 4] = ["experiment", "command", "measure", "place"];
/// Where documents find the functions that are built in.
pub const REPOSITORY: &str = "headwater:functions";

/// An experiment as a workflow description. It takes any table: what is no experiment is carried
/// along, for `check` to find.
pub fn to_workflow(experiment: &Table) -> Value {
    let mut own = experiment.clone();
    let rest = own.remove(REST);
    let built = build::build(&own);
    match rest {
        Some(rest) => rest::apply(built, &rest),
        None => built,
    }
}

/// A workflow description as an experiment's table, such that [`to_workflow`] of it is the same
/// again.
pub fn to_experiment(workflow: &Value) -> Table {
    let mut table = extract::extract(workflow);
    if let Some(rest) = rest::difference(&build::build(&table), workflow) {
        table.insert(REST.into(), rest);
    }
    table
}
