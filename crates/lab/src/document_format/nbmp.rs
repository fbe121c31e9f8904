//! Reads NBMP workflow descriptions as experiments.

use super::ParsedDocument;
use crate::experiment::{DocumentFault, built_in_functions};
use crate::nbmp::{
    DescriptionKind, NbmpFault, OWN_FUNCTIONS, ValidationStrictness, adapt_workflow,
    find_ignored_members, find_unsupported_members, is_foreign_workflow, json_path_of_key,
    parse_bounded_json, to_experiment, to_workflow, validate_description,
};
use serde_json::Value;

pub(super) fn parse_nbmp_document(text: &str) -> Result<ParsedDocument, Vec<DocumentFault>> {
    let workflow = parse_workflow(text).map_err(|offences| {
        offences
            .into_iter()
            .map(DocumentFault::from)
            .collect::<Vec<_>>()
    })?;
    ParsedDocument::from_workflow(&workflow)
}

pub(super) fn check_nbmp_table(
    parsed: ParsedDocument,
) -> Result<ParsedDocument, Vec<DocumentFault>> {
    // Cannot fail, because the text has already been parsed as TOML.
    let table = toml::from_str(&parsed.text).unwrap_or_default();
    parsed.with_ignored_members(&to_workflow(&table))
}

impl ParsedDocument {
    /// Converts a valid workflow description into an experiment.
    ///
    /// # Errors
    /// The workflow description cannot be run as an experiment; the faults are the reasons.
    pub fn from_workflow(workflow: &Value) -> Result<ParsedDocument, Vec<DocumentFault>> {
        if is_foreign_workflow(workflow) {
            return ParsedDocument::from_foreign_workflow(workflow);
        }
        let table = to_experiment(workflow);
        let text = toml::to_string_pretty(&table)
            .map_err(|error| vec![fault_at(workflow, "", error.to_string())])?;
        let place = |fault: DocumentFault| fault_at(workflow, &fault.path, fault.what);
        let parsed = ParsedDocument::parse_toml(&text)
            .map_err(|faults| faults.into_iter().map(place).collect::<Vec<_>>())?;
        parsed.with_ignored_members(workflow)
    }

    /// Converts a workflow description that another program wrote into an experiment.
    fn from_foreign_workflow(workflow: &Value) -> Result<ParsedDocument, Vec<DocumentFault>> {
        let adapted = adapt_workflow(workflow).map_err(|faults| {
            faults
                .into_iter()
                .map(DocumentFault::from)
                .collect::<Vec<_>>()
        })?;
        let text = toml::to_string_pretty(&adapted.table)
            .map_err(|error| vec![fault_at(workflow, "", error.to_string())])?;
        let mut parsed = ParsedDocument::parse_toml(&text)?.with_ignored_members(workflow)?;
        parsed.ignored_members.extend(adapted.ignored);
        Ok(parsed)
    }

    fn with_ignored_members(self, workflow: &Value) -> Result<ParsedDocument, Vec<DocumentFault>> {
        let unsupported = find_unsupported_members(workflow);
        if !unsupported.is_empty() {
            return Err(unsupported.into_iter().map(DocumentFault::from).collect());
        }
        let mut ignored_members = find_ignored_members(workflow);
        if workflow.get("reporting").is_some() {
            ignored_members.push("$.reporting".into());
        }
        Ok(ParsedDocument {
            ignored_members,
            ..self
        })
    }
}

/// Parses a workflow description and validates it leniently, because many existing documents are
/// not strictly valid.
///
/// # Errors
/// The text is invalid; all faults are returned.
pub(crate) fn parse_workflow(text: &str) -> Result<Value, Vec<NbmpFault>> {
    let workflow = parse_bounded_json(text.as_bytes()).map_err(|offence| vec![offence])?;
    let offences = validate_description(
        &workflow,
        DescriptionKind::Workflow,
        ValidationStrictness::Lenient,
        &known_functions(),
    );
    match offences.is_empty() {
        true => Ok(workflow),
        false => Err(offences),
    }
}

/// Returns the names of the functions that workflow descriptions may use without describing them.
pub(crate) fn known_functions() -> Vec<&'static str> {
    let built_in = built_in_functions().keys().map(String::as_str);
    built_in.chain(OWN_FUNCTIONS).collect()
}

fn fault_at(workflow: &Value, path: &str, what: String) -> DocumentFault {
    DocumentFault::from(NbmpFault {
        path: json_path_of_key(workflow, path),
        what,
    })
}

impl From<NbmpFault> for DocumentFault {
    fn from(offence: NbmpFault) -> DocumentFault {
        DocumentFault {
            line: 0,
            column: 0,
            path: offence.path,
            what: offence.what,
        }
    }
}
