//! Runs all checks of a description.

use super::json_path::{JsonPath, NbmpFault};
use super::{DescriptionKind, ValidationStrictness, descriptor_schema, graph};
use serde_json::Value;

/// Maximum number of reported faults.
pub const OFFENCES_MAX: usize = 1000;

/// Returns at most [`OFFENCES_MAX`] faults of a document. Faults of fields come first, and then
/// faults of names and connections. `known` lists functions that documents may name without
/// describing them.
pub fn validate_description(
    document: &Value,
    kind: DescriptionKind,
    level: ValidationStrictness,
    known: &[&str],
) -> Vec<NbmpFault> {
    let mut found = Vec::new();
    descriptor_schema::description_shape(kind).check_value(
        document,
        level,
        &JsonPath::root(),
        &mut found,
    );
    graph::check_graph(document, kind, level, known, &mut found);
    found.dedup();
    found.truncate(OFFENCES_MAX);
    found
}
