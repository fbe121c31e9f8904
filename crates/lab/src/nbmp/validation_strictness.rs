//! Strictness of validation.

/// Strictness of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationStrictness {
    /// Checks everything that the standard requires.
    Strict,
    /// Checks types, enumerated values, references and identifiers. Accepts missing or empty
    /// keywords, images, workflow ports and whole descriptors, because many existing documents lack
    /// these members.
    Lenient,
}
