//! A document in either of its languages.

use super::{Document, Fault, check};
use crate::nbmp::{
    Kind, Level, OWN_FUNCTIONS, Offence, functions, place_of, read, to_experiment, to_workflow,
    undone, validate, without_effect,
};
use serde_json::Value;

/// A document without a fault, and what it is in TOML.
#[derive(Debug, Clone)]
pub struct Written {
    /// What it says.
    pub document: Document,
    /// As TOML: as it was written, or made from a workflow description.
    pub text: String,
    /// What only NBMP can say and a run does not act on, as JSONPaths.
    pub idle: Vec<String>,
}

impl Written {
    /// Reads and checks TOML, or JSON: whatever begins with a brace.
    ///
    /// # Errors
    /// All that is wrong: first in the form, and where that is right, in what it says.
    pub fn read(text: &str) -> Result<Written, Vec<Fault>> {
        if text.trim_start().starts_with('{') {
            let workflow = workflow(text)
                .map_err(|offences| offences.into_iter().map(Fault::from).collect::<Vec<_>>())?;
            return Written::of(&workflow);
        }
        let written = Written::toml(text)?;
        if written.document.nbmp.is_empty() {
            return Ok(written);
        }
        // It reads as TOML.
        let table = toml::from_str(text).unwrap_or_default();
        written.carries(&to_workflow(&table))
    }

    fn toml(text: &str) -> Result<Written, Vec<Fault>> {
        let document = Document::read(text).map_err(|fault| vec![fault])?;
        let faults = check(text, &document);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Written {
            document,
            text: text.to_owned(),
            idle: Vec::new(),
        })
    }

    /// A workflow description that is one.
    ///
    /// # Errors
    /// Why it is no experiment that can be run, with JSONPaths.
    pub fn of(workflow: &Value) -> Result<Written, Vec<Fault>> {
        let table = to_experiment(workflow);
        let text = toml::to_string_pretty(&table);
        let text = text.map_err(|error| vec![placed(workflow, "", error.to_string())])?;
        let place = |fault: Fault| placed(workflow, &fault.path, fault.what);
        let written = Written::toml(&text);
        let written = written.map_err(|faults| faults.into_iter().map(place).collect::<Vec<_>>());
        written?.carries(workflow)
    }

    /// With what else its description says.
    fn carries(self, workflow: &Value) -> Result<Written, Vec<Fault>> {
        let undone = undone(workflow);
        if !undone.is_empty() {
            return Err(undone.into_iter().map(Fault::from).collect());
        }
        let mut idle = without_effect(workflow);
        if workflow.get("reporting").is_some() {
            idle.push("$.reporting".into());
        }
        Ok(Written { idle, ..self })
    }
}

/// A text as a workflow description, as far as documents in use keep to the standard.
///
/// # Errors
/// All that is wrong in it.
pub(crate) fn workflow(text: &str) -> Result<Value, Vec<Offence>> {
    let workflow = read(text.as_bytes()).map_err(|offence| vec![offence])?;
    let offences = validate(&workflow, Kind::Workflow, Level::Lax, &known());
    match offences.is_empty() {
        true => Ok(workflow),
        false => Err(offences),
    }
}

/// The functions that a document may name without describing them.
pub(crate) fn known() -> Vec<&'static str> {
    let built_in = functions::built_in().keys().map(String::as_str);
    built_in.chain(OWN_FUNCTIONS).collect()
}

fn placed(workflow: &Value, path: &str, what: String) -> Fault {
    Fault::from(Offence {
        path: place_of(workflow, path),
        what,
    })
}

impl From<Offence> for Fault {
    fn from(offence: Offence) -> Fault {
        Fault {
            line: 0,
            column: 0,
            path: offence.path,
            what: offence.what,
        }
    }
}
