//! Turns a request body into a runnable workflow.

use super::nbmp_resource_key::NbmpResourceKey;
use super::reporting_target::{ReportingTarget, read_reporting_target};
use super::settings::WorkflowManagerSettings;
use crate::document_format::{ParsedDocument, known_functions};
use crate::experiment::RunPlan;
use crate::nbmp::{
    DescriptionKind, NbmpFault, ValidationStrictness, find_ignored_members,
    find_unsupported_members, parse_bounded_json, validate_description,
};
use serde_json::{Value, json};

/// A workflow that can be run.
#[derive(Debug)]
pub(super) struct PreparedWorkflow {
    pub(super) kind: DescriptionKind,
    pub(super) id: String,
    /// The posted description.
    pub(super) description: Value,
    pub(super) plan: RunPlan,
    /// The experiment as TOML.
    pub(super) text: String,
    /// Whether the workflow is queued immediately.
    pub(super) starts: bool,
    /// JSONPaths of ignored members.
    pub(super) partial: Vec<String>,
    /// Address that receives the reports.
    pub(super) report: Option<ReportingTarget>,
}

impl PreparedWorkflow {
    pub(super) fn key(&self) -> NbmpResourceKey {
        NbmpResourceKey::new(self.kind, &self.id)
    }
}

/// A description that is refused.
#[derive(Debug)]
pub(super) struct RefusedDescription {
    /// The description, as far as it could be parsed.
    pub(super) description: Value,
    /// True if the description is invalid. False if the description is valid but unsupported.
    pub(super) failed: bool,
    pub(super) offences: Vec<NbmpFault>,
}

/// Parses a request body and validates it at the lenient level.
pub(super) fn parse_description(
    kind: DescriptionKind,
    body: &[u8],
) -> Result<Value, RefusedDescription> {
    let refuse = |description: Value, offences| RefusedDescription {
        description,
        failed: true,
        offences,
    };
    let description =
        parse_bounded_json(body).map_err(|offence| refuse(json!({}), vec![offence]))?;
    let mut offences = validate_description(
        &description,
        kind,
        ValidationStrictness::Lenient,
        &known_functions(),
    );
    let id = description.pointer("/general/id").and_then(Value::as_str);
    if id.is_some_and(|id| !is_identifier(id)) {
        offences.push(NbmpFault {
            path: "$.general.id".into(),
            what: "invalid id; use up to 64 letters, digits, dots, dashes and underscores, not starting with a dot".into(),
        });
    }
    match offences.is_empty() {
        true => Ok(description),
        false => Err(refuse(description, offences)),
    }
}

/// Returns whether an identifier is safe as a part of URLs and folder names.
fn is_identifier(id: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !id.is_empty() && id.len() <= 64 && !id.starts_with('.') && id.chars().all(of)
}

/// Removes what the manager adds to the descriptions that it returns, so that a client can send a
/// returned description back. Otherwise, the same experiment would have another document.
fn remove_added_members(description: &mut Value) {
    let Some(members) = description.as_object_mut() else {
        return;
    };
    members.remove("acknowledge");
    let monitoring = members.get_mut("monitoring").and_then(Value::as_object_mut);
    let Some(monitoring) = monitoring else {
        return;
    };
    let is_added = |variable: &Value| {
        let name = variable.get("name").and_then(Value::as_str);
        name.is_some_and(|name| name.starts_with("lab."))
    };
    if let Some(variables) = monitoring.get_mut("variable").and_then(Value::as_array_mut) {
        variables.retain(|variable| !is_added(variable));
        if variables.is_empty() {
            monitoring.remove("variable");
        }
    }
    if monitoring.is_empty() {
        members.remove("monitoring");
    }
}

/// Returns the workflow that a workflow's description describes. The state is not part of the
/// experiment.
fn without_state(description: &Value) -> Value {
    let mut workflow = description.clone();
    if let Some(general) = workflow.get_mut("general").and_then(Value::as_object_mut) {
        general.insert("state".into(), "instantiated".into());
    }
    workflow
}

/// Converts a description to a workflow that can be run.
pub(super) fn prepare_workflow(
    kind: DescriptionKind,
    mut description: Value,
    scale: Option<&str>,
    settings: &WorkflowManagerSettings,
) -> Result<PreparedWorkflow, RefusedDescription> {
    let refuse = |description: &Value, offences| RefusedDescription {
        description: description.clone(),
        failed: false,
        offences,
    };
    remove_added_members(&mut description);
    let workflow = match kind {
        DescriptionKind::Task => task_to_workflow(&description),
        _ => without_state(&description),
    };
    let report = read_reporting_target(&description, &settings.report_to);
    let mut offences = find_unsupported_members(&description);
    offences.extend(report.as_ref().err().cloned());
    if !offences.is_empty() {
        return Err(refuse(&description, offences));
    }
    let written = ParsedDocument::from_workflow(&workflow).map_err(|faults| {
        let offence = |fault: crate::experiment::DocumentFault| NbmpFault {
            path: match kind {
                DescriptionKind::Task => fault.path.replacen(TASK_PREFIX, "$", 1),
                _ => fault.path,
            },
            what: fault.what,
        };
        refuse(&description, faults.into_iter().map(offence).collect())
    })?;
    let plan = RunPlan::new(written.document, scale).map_err(|error| {
        let offence = NbmpFault {
            path: "$".into(),
            what: error.to_string(),
        };
        refuse(&description, vec![offence])
    })?;
    let state = description
        .pointer("/general/state")
        .and_then(Value::as_str);
    let id = description.pointer("/general/id").and_then(Value::as_str);
    Ok(PreparedWorkflow {
        kind,
        id: id.unwrap_or_default().to_owned(),
        plan,
        text: written.text,
        // A failed workflow starts again only if the client requests it.
        starts: !matches!(state, Some("idle" | "in-error")),
        partial: find_ignored_members(&description),
        report: report.ok().flatten(),
        description,
    })
}

/// JSONPath of a task's members in the workflow that [`task_to_workflow`] builds.
const TASK_PREFIX: &str = "$.processing['function-restrictions'][0]";

/// Converts a task to a workflow with one measuring function. The task's parameters configure this
/// function, and the task's variables are the quantities that the function measures.
fn task_to_workflow(task: &Value) -> Value {
    let general = task.get("general").cloned().unwrap_or_default();
    let text = |name: &str| {
        general
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut function = json!({"instance": "task", "general": {"id": "measure"}});
    for part in ["configuration", "monitoring"] {
        if let Some(value) = task.get(part) {
            function[part] = value.clone();
        }
    }
    let rounds = json!([{
        "name": "rounds", "id": 1, "datatype": "integer",
        "values": [{"name": "value", "id": 1, "restrictions": {"min-value": 1, "max-value": 1}}],
    }]);
    json!({
        "general": {"id": text("id"), "name": text("name"), "description": text("description")},
        "processing": {"function-restrictions": [
            function,
            {"instance": "lab.experiment", "configuration": {"parameters": rounds}},
        ]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_stay_inside_urls_and_folders() {
        for good in ["a", "d08b10de-ea8e-422f-be57-9d32e3082765", "A.b_c"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            ".a",
            "a/b",
            "a b",
            "é",
            &"x".repeat(65),
            "a%2fb",
        ] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
