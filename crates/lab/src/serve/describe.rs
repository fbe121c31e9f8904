//! Describes workflows in NBMP.

use super::prepare::RefusedDescription;
use super::workflow_registry::{WorkflowEntry, WorkflowState};
use serde_json::{Value, json};

/// Returns the posted description with the workflow's state, acknowledgement and figures.
pub(super) fn describe_workflow(entry: &WorkflowEntry) -> Value {
    let prepared = &entry.prepared;
    let mut description = prepared.description.clone();
    description["general"]["state"] = entry.state.name().into();
    description["acknowledge"] = match prepared.partial.as_slice() {
        [] => json!({"status": "fulfilled"}),
        partial => json!({"status": "partially-fulfilled", "partial": partial}),
    };
    let mut variables = figures_as_nbmp_variables(entry);
    let posted = description
        .pointer("/monitoring/variable")
        .and_then(Value::as_array);
    let mut all = posted.cloned().unwrap_or_default();
    all.append(&mut variables);
    description["monitoring"]["variable"] = all.into();
    description
}

/// Returns the figures of a workflow's runs as NBMP variables.
pub(super) fn figures_as_nbmp_variables(entry: &WorkflowEntry) -> Vec<Value> {
    let figures = &entry.figures;
    let integer_variable = |name: &str, definition: &str, value: usize| {
        json!({
            "name": format!("lab.{name}"), "definition": definition, "unit": "1",
            "var-type": "integer", "value": value.to_string(),
        })
    };
    let mut all = vec![
        integer_variable(
            "runs",
            "number of runs of all arms and rounds",
            figures.runs,
        ),
        integer_variable("runs-done", "finished runs that count", figures.done),
        integer_variable("runs-thrown", "discarded runs", figures.discarded),
        integer_variable(
            "reports-lost",
            "reports that could not be delivered",
            figures.reports_lost,
        ),
    ];
    all.extend(figures.values.iter().map(|(name, value)| {
        json!({
            "name": format!("lab.last.{name}"), "definition": "value in the last counted run",
            "unit": "1", "var-type": "number", "value": value.to_string(),
        })
    }));
    if let (WorkflowState::InError, Some(why)) = (entry.state, &entry.why) {
        all.push(json!({
            "name": "lab.why", "definition": "reason for the error", "unit": "1",
            "var-type": "string", "value": why,
        }));
    }
    all
}

/// Returns a refused description with the paths of its faults.
pub(super) fn build_refusal_description(refused: &RefusedDescription) -> Value {
    let mut description = match &refused.description {
        Value::Object(map) => Value::Object(map.clone()),
        _ => json!({}),
    };
    let mut paths: Vec<&String> = refused
        .offences
        .iter()
        .map(|offence| &offence.path)
        .collect();
    paths.dedup();
    description["acknowledge"] = match refused.failed {
        true => json!({"status": "failed", "failed": paths}),
        false => json!({"status": "not-supported", "unsupported": paths}),
    };
    description
}
