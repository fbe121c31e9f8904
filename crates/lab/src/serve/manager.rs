//! The state of the Workflow Manager, which all requests share.

use super::nbmp_resource_key::NbmpResourceKey;
use super::prepare::PreparedWorkflow;
use super::settings::WorkflowManagerSettings;
use super::workflow_registry::WorkflowRegistry;
use crate::experiment::{
    MachineDescription, RecordFileError, RunRecord, holds_results_of_document,
};
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

    /// Returns the result folder of a workflow if it holds results of this workflow's document. An
    /// earlier manager may have stored the results of another document under the same identifier.
    fn find_result_folder(&self, prepared: &PreparedWorkflow) -> Option<PathBuf> {
        let folder = self.workflow_folder(&prepared.key());
        holds_results_of_document(&folder, &prepared.text).then_some(folder)
    }

    /// Reads the records of a workflow. Without results of this workflow's document, the list is
    /// empty.
    pub(super) fn read_workflow_records(
        &self,
        prepared: &PreparedWorkflow,
    ) -> Result<Vec<RunRecord>, RecordFileError> {
        match self.find_result_folder(prepared) {
            Some(folder) => RunRecord::read_all_records(&folder),
            None => Ok(Vec::new()),
        }
    }

    /// Reads the descriptions of the machines that executed the runs of a workflow. Without results
    /// of this workflow's document, the list is empty.
    pub(super) fn read_workflow_machines(
        &self,
        prepared: &PreparedWorkflow,
    ) -> Result<Vec<MachineDescription>, RecordFileError> {
        match self.find_result_folder(prepared) {
            Some(folder) => MachineDescription::read_machine_descriptions(&folder),
            None => Ok(Vec::new()),
        }
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

#[cfg(test)]
mod tests {
    use super::super::describe::describe_workflow;
    use super::super::prepare::{parse_description, prepare_workflow};
    use super::*;
    use crate::nbmp::{DescriptionKind, to_workflow};
    use serde_json::{Value, json};

    fn create_manager(out: &std::path::Path) -> WorkflowManager {
        WorkflowManager {
            settings: WorkflowManagerSettings {
                listen: Vec::new(),
                token: None,
                hosts: Vec::new(),
                out: out.to_owned(),
                base: out.to_owned(),
                workflows_max: 10,
                report_to: Vec::new(),
            },
            registry: Arc::new(WorkflowRegistry::new(10)),
        }
    }

    fn sample_workflow(question: &str) -> Value {
        let text = format!(
            "name = 'x'\nquestion = '{question}'\nrounds = 1\n[sink.s]\nrun = 'true'\nmeasure.a = '/a'\n"
        );
        to_workflow(&toml::from_str(&text).unwrap())
    }

    /// Returns the sink of the sample workflow as a task.
    fn sample_task() -> Value {
        let workflow = sample_workflow("q");
        let functions = workflow["processing"]["function-restrictions"].as_array();
        let sink = functions.unwrap().iter().find(|one| one["instance"] == "s");
        let sink = sink.unwrap();
        json!({
            "scheme": workflow["scheme"],
            "general": {"id": "t", "name": "t", "description": "q"},
            "configuration": sink["configuration"],
            "monitoring": sink["monitoring"],
        })
    }

    fn prepare(
        manager: &WorkflowManager,
        kind: DescriptionKind,
        description: &Value,
    ) -> PreparedWorkflow {
        let body = serde_json::to_vec(description).unwrap();
        let description = parse_description(kind, &body).unwrap();
        prepare_workflow(kind, description, None, &manager.settings).unwrap()
    }

    #[test]
    fn the_results_of_another_document_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let manager = create_manager(folder.path());
        let [first, second] = ["first", "second"]
            .map(|text| prepare(&manager, DescriptionKind::Workflow, &sample_workflow(text)));
        let out = manager.workflow_folder(&first.key());
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("document.toml"), &first.text).unwrap();
        let line = serde_json::to_string(&RunRecord::default()).unwrap() + "\n";
        std::fs::write(out.join("runs.jsonl"), line).unwrap();
        let records = |prepared| manager.read_workflow_records(prepared).unwrap().len();
        assert_eq!(first.key(), second.key());
        assert_eq!((records(&first), records(&second)), (1, 0));
        // The records can be read although a machine description is damaged.
        std::fs::write(out.join("machine.jsonl"), "damaged\n").unwrap();
        assert!(manager.read_workflow_machines(&first).is_err());
        assert_eq!(records(&first), 1);
        assert_eq!(manager.read_workflow_machines(&second).unwrap(), []);
    }

    #[test]
    fn a_returned_description_describes_the_same_experiment_and_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let manager = create_manager(folder.path());
        for (kind, description) in [
            (DescriptionKind::Workflow, sample_workflow("q")),
            (DescriptionKind::Task, sample_task()),
        ] {
            let prepared = prepare(&manager, kind, &description);
            let key = prepared.key();
            manager.registry.add_workflow(prepared).unwrap();
            for why in [None, Some("no reason".to_owned())] {
                manager.registry.enqueue_unless_active(&key).unwrap();
                manager.registry.next().unwrap();
                manager.registry.finish_workflow(&key, why);
                let entry = manager.registry.find_entry(&key).unwrap();
                let returned = describe_workflow(&entry);
                let again = prepare(&manager, kind, &returned);
                assert!(!again.starts, "{returned}");
                assert_eq!(again.text, entry.prepared.text);
                let clear = || panic!("the results are deleted");
                let entry = manager.registry.replace_workflow(again, clear).unwrap();
                let variables = |description: &Value| {
                    let all = description["monitoring"]["variable"].as_array();
                    all.unwrap()
                        .iter()
                        .filter(|one| one["name"] == "lab.runs")
                        .count()
                };
                assert_eq!(variables(&describe_workflow(&entry)), 1);
            }
        }
    }
}
