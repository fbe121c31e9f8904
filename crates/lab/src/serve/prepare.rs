//! From a body to what can be run, or why it cannot.

use super::book::{Name, name};
use super::report;
use crate::config::serve::Settings;
use crate::experiment::{Plan, Written, known};
use crate::nbmp::{Kind, Level, Offence, read, undone, validate, without_effect};
use serde_json::{Value, json};

/// What can be run.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) kind: Kind,
    pub(super) id: String,
    /// As it was posted.
    pub(super) description: Value,
    pub(super) plan: Plan,
    /// The experiment as TOML.
    pub(super) text: String,
    /// Whether it is to be run at once.
    pub(super) starts: bool,
    /// What is carried along without effect, as JSONPaths.
    pub(super) partial: Vec<String>,
    /// Where reports go, and how often.
    pub(super) report: Option<report::Target>,
}

impl Prepared {
    pub(super) fn name(&self) -> Name {
        name(self.kind, &self.id)
    }
}

/// Why a description is not taken.
#[derive(Debug)]
pub(super) struct Refused {
    /// The description, as far as it is one.
    pub(super) description: Value,
    /// `failed`: it is wrong. Else it is right, but nothing that can be done here.
    pub(super) failed: bool,
    pub(super) offences: Vec<Offence>,
}

/// A body as a description of this kind, as far as documents in use keep to the standard.
pub(super) fn described(kind: Kind, body: &[u8]) -> Result<Value, Refused> {
    let refuse = |description: Value, offences| Refused {
        description,
        failed: true,
        offences,
    };
    let description = read(body).map_err(|offence| refuse(json!({}), vec![offence]))?;
    let mut offences = validate(&description, kind, Level::Lax, &known());
    let id = description.pointer("/general/id").and_then(Value::as_str);
    if id.is_some_and(|id| !is_identifier(id)) {
        offences.push(Offence {
            path: "$.general.id".into(),
            what: "here, an id is up to 64 letters, digits, dots, dashes and underscores, no dot first".into(),
        });
    }
    match offences.is_empty() {
        true => Ok(description),
        false => Err(refuse(description, offences)),
    }
}

/// It becomes part of URLs and a folder's name.
fn is_identifier(id: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !id.is_empty() && id.len() <= 64 && !id.starts_with('.') && id.chars().all(of)
}

/// What can be run of a description.
pub(super) fn prepared(
    kind: Kind,
    description: Value,
    scale: Option<&str>,
    settings: &Settings,
) -> Result<Prepared, Refused> {
    let refuse = |description: &Value, offences| Refused {
        description: description.clone(),
        failed: false,
        offences,
    };
    let workflow = match kind {
        Kind::Task => of_task(&description),
        _ => description.clone(),
    };
    let report = report::target(&description, &settings.report_to);
    let mut offences = undone(&description);
    offences.extend(report.as_ref().err().cloned());
    if !offences.is_empty() {
        return Err(refuse(&description, offences));
    }
    let written = Written::of(&workflow).map_err(|faults| {
        let offence = |fault: crate::experiment::Fault| Offence {
            path: match kind {
                Kind::Task => fault.path.replacen(TASK_PREFIX, "$", 1),
                _ => fault.path,
            },
            what: fault.what,
        };
        refuse(&description, faults.into_iter().map(offence).collect())
    })?;
    let plan = Plan::new(written.document, scale).map_err(|what| {
        let path = "$".into();
        refuse(&description, vec![Offence { path, what }])
    })?;
    let state = description
        .pointer("/general/state")
        .and_then(Value::as_str);
    let id = description.pointer("/general/id").and_then(Value::as_str);
    Ok(Prepared {
        kind,
        id: id.unwrap_or_default().to_owned(),
        plan,
        text: written.text,
        starts: !matches!(state, Some("idle")),
        partial: without_effect(&description),
        report: report.ok().flatten(),
        description,
    })
}

/// Where a task's own members stand in the workflow that is made of it.
const TASK_PREFIX: &str = "$.processing['function-restrictions'][0]";

/// A task as a workflow of one client: its parameters are the client's, its variables what is
/// measured.
fn of_task(task: &Value) -> Value {
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
