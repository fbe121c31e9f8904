//! Descriptions of MPEG's Network-Based Media Processing (ISO/IEC 23090-8, second edition): bounded
//! parsing and validation.
//!
//! [`parse_bounded`] parses a text as JSON. [`validate_description`] checks it against the
//! standard's field tables (`descriptors.rs`), and checks names, streams and ports (`graph.rs`).
//! [`find_unsupported`] and [`find_ignored`] list what the lab does not implement. Every
//! [`NbmpFault`] has a JSONPath (RFC 9535).
//!
//! The published JSON schema is not used: ten of its references do not resolve, so it rejects
//! documents that the standard allows, or accepts documents that it forbids.

mod conformance_level;
mod convert;
mod cross_field_checks;
mod descriptors;
mod field_shape;
mod foreign;
mod functions;
mod graph;
mod path;
mod read;
mod text_forms;
mod unsupported_features;
mod validate;

pub use conformance_level::ConformanceLevel;
pub use convert::{OWN_FUNCTIONS, REPOSITORY, REST, find_json_path, to_experiment, to_workflow};
pub(crate) use foreign::{adapt_workflow, is_foreign};
pub use functions::describe_function;
pub use path::NbmpFault;
pub use read::{BYTES_MAX, DEPTH_MAX, VALUES_MAX, parse_bounded};
pub use unsupported_features::{find_ignored, find_unsupported};
pub use validate::{OFFENCES_MAX, validate_description};

/// Kind of a description, with its media type.
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

/// Values of `scheme.uri`: the first edition, and the second, which this program writes.
pub const SCHEMES: [&str; 2] = ["urn:mpeg:mpegi:nbmp:2020", "urn:mpeg:mpegi:nbmp:2023"];
