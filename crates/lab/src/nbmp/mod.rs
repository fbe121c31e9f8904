//! Descriptions of MPEG's Network-Based Media Processing (ISO/IEC 23090-8, second edition): read
//! within bounds, and judged.
//!
//! A text becomes JSON by [`read()`]; [`validate()`] holds it to the standard's field tables
//! (`descriptors.rs`) and to what no schema can say (`graph.rs`): whether names, streams and ports
//! meet. [`undone`] and [`without_effect`] say what of a right one the lab does not do. Every [`Offence`]
//! has its place as a JSONPath (RFC 9535).
//!
//! The published JSON schema is not used: ten of its references lead nowhere, so that it refuses
//! or overlooks what the standard says otherwise.

mod among;
mod beyond;
mod convert;
mod descriptors;
pub mod functions;
mod graph;
mod path;
mod read;
mod shape;
mod validate;
mod words;

pub use beyond::{undone, without_effect};
pub use convert::{OWN_FUNCTIONS, REPOSITORY, REST, place_of, to_experiment, to_workflow};
pub use path::Offence;
pub use read::{BYTES_MAX, DEPTH_MAX, VALUES_MAX, read};
pub use validate::{Level, OFFENCES_MAX, validate};

/// What a document describes, and its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A workflow (WDD).
    Workflow,
    /// A task (TDD).
    Task,
    /// A function (FDD).
    Function,
}

impl Kind {
    /// As HTTP says it.
    pub const fn media_type(self) -> &'static str {
        match self {
            Kind::Workflow => "application/mpeg-nbmp-wdd+json",
            Kind::Task => "application/mpeg-nbmp-tdd+json",
            Kind::Function => "application/mpeg-nbmp-fdd+json",
        }
    }
}

/// What `scheme.uri` says: the first edition, and the second, which is written.
pub const SCHEMES: [&str; 2] = ["urn:mpeg:mpegi:nbmp:2020", "urn:mpeg:mpegi:nbmp:2023"];
