//! Strictness of validation.

/// Strictness of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConformanceLevel {
    /// Checks everything that the standard requires.
    Strict,
    /// Checks types, enumerated values, references and identifiers. Ports of workflows, keywords,
    /// images and whole descriptors may be missing or empty, because many existing documents lack
    /// them.
    Lenient,
}
