//! All judgements together.

use super::path::{Offence, Place};
use super::{Kind, descriptors, graph};
use serde_json::Value;

/// How much of the standard is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// All that it asks for.
    Strict,
    /// What documents in use keep to: types, choices, references and identifiers, but ports of
    /// workflows, keywords, images, and whole descriptors may be missing or empty.
    Lax,
}

/// No more offences are told.
pub const OFFENCES_MAX: usize = 1000;

/// All that is wrong in a document, in the order of its fields. `known` are the functions, by
/// identifier, that documents may name without describing them.
pub fn validate(document: &Value, kind: Kind, level: Level, known: &[&str]) -> Vec<Offence> {
    let mut found = Vec::new();
    descriptors::of(kind).hold(document, level, &Place::root(), &mut found);
    graph::check(document, kind, level, known, &mut found);
    found.dedup();
    found.truncate(OFFENCES_MAX);
    found
}
