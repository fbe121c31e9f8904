//! Reads an experiment document, which is either TOML or an NBMP workflow description.

use crate::experiment::{DocumentFault, ExperimentDocument, check_document};

#[cfg(feature = "nbmp")]
mod nbmp;

#[cfg(feature = "nbmp")]
pub(crate) use nbmp::{known_functions, parse_workflow};

/// A valid document together with its TOML text.
#[derive(Debug, Clone)]
pub struct ParsedDocument {
    /// The parsed experiment.
    pub document: ExperimentDocument,
    /// The TOML text, as written or converted from a workflow description.
    pub text: String,
    /// JSONPaths of NBMP members that a run ignores.
    pub ignored_members: Vec<String>,
}

impl ParsedDocument {
    /// Parses and checks a document. A text that starts with a brace is parsed as JSON, and any
    /// other text as TOML.
    ///
    /// # Errors
    /// The text has faults. If the syntax is invalid, the content is not checked.
    pub fn parse_and_check(text: &str) -> Result<ParsedDocument, Vec<DocumentFault>> {
        if text.trim_start().starts_with('{') {
            return parse_nbmp_document(text);
        }
        let parsed = ParsedDocument::parse_toml(text)?;
        if parsed.document.nbmp.is_empty() {
            return Ok(parsed);
        }
        check_nbmp_table(parsed)
    }

    fn parse_toml(text: &str) -> Result<ParsedDocument, Vec<DocumentFault>> {
        let document = ExperimentDocument::parse_toml(text).map_err(|fault| vec![fault])?;
        let faults = check_document(text, &document);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(ParsedDocument {
            document,
            text: text.to_owned(),
            ignored_members: Vec::new(),
        })
    }
}

#[cfg(feature = "nbmp")]
use nbmp::{check_nbmp_table, parse_nbmp_document};

#[cfg(not(feature = "nbmp"))]
fn parse_nbmp_document(_: &str) -> Result<ParsedDocument, Vec<DocumentFault>> {
    let what = "JSON documents are NBMP workflow descriptions";
    Err(vec![missing_feature_fault(what)])
}

#[cfg(not(feature = "nbmp"))]
fn check_nbmp_table(_: ParsedDocument) -> Result<ParsedDocument, Vec<DocumentFault>> {
    Err(vec![missing_feature_fault(
        "the table [nbmp] belongs to NBMP",
    )])
}

#[cfg(not(feature = "nbmp"))]
fn missing_feature_fault(what: &str) -> DocumentFault {
    DocumentFault::of_whole_document(crate::commands::missing_feature_message(what, "nbmp"))
}
