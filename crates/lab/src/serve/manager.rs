//! The state of the Workflow Manager, which all requests share.

use super::nbmp_resource_key::NbmpResourceKey;
use super::settings::WorkflowManagerSettings;
use super::workflow_registry::WorkflowRegistry;
use std::path::PathBuf;
use std::sync::Arc;

/// The Workflow Manager.
pub(crate) struct WorkflowManager {
    pub(super) settings: WorkflowManagerSettings,
    pub(super) registry: Arc<WorkflowRegistry>,
}

impl WorkflowManager {
    /// Returns the result folder of a workflow.
    pub(super) fn workflow_folder(&self, key: &NbmpResourceKey) -> PathBuf {
        self.settings.out.join(key.collection()).join(&key.id)
    }

    /// Changes a workflow. `change` receives a function that renames the workflow's result folder.
    /// The renamed folder is deleted after `change` has returned, so that the registry is not
    /// locked during the deletion.
    pub(super) fn change_and_delete_results<T>(
        &self,
        key: &NbmpResourceKey,
        change: impl FnOnce(&dyn Fn()) -> T,
    ) -> T {
        let folder = self.workflow_folder(key);
        // No other workflow uses this name, because identifiers cannot start with a dot.
        let moved = folder.with_file_name(format!(".gone-{}", key.id));
        let changed = change(&|| {
            if std::fs::rename(&folder, &moved).is_err() {
                remove_folder(&folder);
            }
        });
        remove_folder(&moved);
        changed
    }
}

fn remove_folder(folder: &std::path::Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "cannot remove results");
    }
}
