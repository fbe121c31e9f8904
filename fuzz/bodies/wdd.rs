//! Checks that no workflow description makes its parser, its checks or its translation panic, or
//! report errors without a limit. A description must keep all values when it is converted to TOML
//! and back. TOML must also keep all values when it is converted to a description and back.

use crate::nbmp::{
    DEPTH_MAX, DescriptionKind, OFFENCES_MAX, REST, ValidationStrictness, json_path_of_key,
    parse_bounded_json, to_experiment, to_workflow, validate_description,
};
use serde_json::Value;

pub fn run(data: &[u8]) {
    if let Ok(workflow) = parse_bounded_json(data) {
        for kind in [
            DescriptionKind::Workflow,
            DescriptionKind::Task,
            DescriptionKind::Function,
        ] {
            for level in [ValidationStrictness::Strict, ValidationStrictness::Lenient] {
                let offences = validate_description(&workflow, kind, level, &[]);
                assert!(offences.len() <= OFFENCES_MAX);
                assert!(offences.iter().all(|offence| offence.path.starts_with('$')));
            }
        }
        check_round_trip(&workflow);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(experiment) = toml::from_str::<toml::Table>(text) {
        let workflow = to_workflow(&experiment);
        check_round_trip(&workflow);
        let plain = !experiment.contains_key(REST) && !text.contains("nan");
        if plain && nesting_depth(&workflow) < DEPTH_MAX {
            assert_eq!(to_experiment(&workflow), experiment);
        }
        for key in experiment.keys() {
            assert!(json_path_of_key(&workflow, key).starts_with('$'));
        }
    }
}

/// Checks that a workflow is unchanged after its conversion to TOML text and back.
fn check_round_trip(workflow: &Value) {
    let experiment = to_experiment(workflow);
    let text = toml::to_string(&experiment).unwrap_or_default();
    let again: toml::Table = toml::from_str(&text).unwrap_or_default();
    assert_eq!(&to_workflow(&again), workflow, "{text}");
}

fn nesting_depth(value: &Value) -> usize {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return 0,
    };
    1 + inner.map(nesting_depth).max().unwrap_or(0)
}
