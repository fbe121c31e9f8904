//! Strictness of validation.

/// Strictness of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConformanceLevel {
    /// Everything that the standard requires.
    Strict,
    /// Types, choices, references and identifiers. Ports of workflows, keywords, images and whole
    /// descriptors may be missing or empty, as in many existing documents.
    Lenient,
}
