//! Parses and validates descriptions of MPEG's Network-Based Media Processing (NBMP, ISO/IEC
//! 23090-8, second edition), with limits on their size.
//!
//! [`parse_bounded_json`] parses a text as JSON. [`validate_description`] checks the result against the
//! standard's field tables (`descriptor_schema.rs`), and checks names, streams and ports (`graph.rs`).
//! [`find_unsupported_members`] and [`find_ignored_members`] list the members that the lab does not implement.
//! Every [`NbmpFault`] has a JSONPath (RFC 9535).
//!
//! The published JSON schema is not used, because ten of its references do not resolve. The schema
//! therefore rejects documents that the standard allows, or accepts documents that the standard
//! forbids.

mod bounded_json;
mod convert;
mod cross_field_checks;
mod descriptor_schema;
mod field_shape;
mod foreign;
mod functions;
mod graph;
mod json_path;
mod text_syntax_checks;
mod unsupported_features;
mod validate;
mod validation_strictness;

pub use bounded_json::{BYTES_MAX, DEPTH_MAX, VALUES_MAX, parse_bounded_json};
pub use convert::{OWN_FUNCTIONS, REPOSITORY, REST, json_path_of_key, to_experiment, to_workflow};
pub(crate) use foreign::{adapt_workflow, is_foreign_workflow};
pub use functions::describe_function;
pub use json_path::NbmpFault;
pub use unsupported_features::{find_ignored_members, find_unsupported_members};
pub use validate::{OFFENCES_MAX, validate_description};
pub use validation_strictness::ValidationStrictness;

/// Kind of a description. Each kind has its own media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptionKind {
    /// Workflow (WDD).
    Workflow,
    /// Task (TDD).
    Task,
    /// Function (FDD).
    Function,
}

impl DescriptionKind {
    /// Returns the media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            DescriptionKind::Workflow => "application/mpeg-nbmp-wdd+json",
            DescriptionKind::Task => "application/mpeg-nbmp-tdd+json",
            DescriptionKind::Function => "application/mpeg-nbmp-fdd+json",
        }
    }
}

/// Values of `scheme.uri` for the first and the second edition of the standard. This program writes
/// the value of the second edition.
pub const SCHEMES: [&str; 2] = ["urn:mpeg:mpegi:nbmp:2020", "urn:mpeg:mpegi:nbmp:2023"];
