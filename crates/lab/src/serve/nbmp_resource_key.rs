//! The key of a workflow or a task.

use crate::nbmp::DescriptionKind;

/// Identifies a workflow or a task. A workflow and a task can have the same identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NbmpResourceKey {
    pub(super) is_task: bool,
    pub(super) id: String,
}

impl NbmpResourceKey {
    pub(super) fn new(kind: DescriptionKind, id: &str) -> NbmpResourceKey {
        NbmpResourceKey {
            is_task: kind == DescriptionKind::Task,
            id: id.to_owned(),
        }
    }

    /// Returns the name of the collection that contains the workflow or task. URLs and folders use
    /// this name.
    pub(super) fn collection(&self) -> &'static str {
        if self.is_task { "tasks" } else { "workflows" }
    }
}
