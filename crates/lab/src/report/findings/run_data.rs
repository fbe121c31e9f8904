//! The plan and the records of a run.

use crate::experiment::{RunPlan, RunRecord};

/// A run of the catalogue with its plan and records.
pub(super) struct RunData {
    pub(super) plan: RunPlan,
    pub(super) records: Vec<RunRecord>,
}
