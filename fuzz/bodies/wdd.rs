//! No description can make its reader, its judges or its translation panic, be told of without
//! end, or lose a word on the way to TOML and back; nor can any TOML.

use crate::nbmp::{
    DEPTH_MAX, Kind, Level, OFFENCES_MAX, REST, place_of, read, to_experiment, to_workflow,
    validate,
};
use serde_json::Value;

pub fn run(data: &[u8]) {
    if let Ok(workflow) = read(data) {
        for kind in [Kind::Workflow, Kind::Task, Kind::Function] {
            for level in [Level::Strict, Level::Lax] {
                let offences = validate(&workflow, kind, level, &[]);
                assert!(offences.len() <= OFFENCES_MAX);
                assert!(offences.iter().all(|offence| offence.path.starts_with('$')));
            }
        }
        comes_back(&workflow);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(experiment) = toml::from_str::<toml::Table>(text) {
        let workflow = to_workflow(&experiment);
        comes_back(&workflow);
        let plain = !experiment.contains_key(REST) && !text.contains("nan");
        if plain && depth(&workflow) < DEPTH_MAX {
            assert_eq!(to_experiment(&workflow), experiment);
        }
        for key in experiment.keys() {
            assert!(place_of(&workflow, key).starts_with('$'));
        }
    }
}

/// By way of TOML as text.
fn comes_back(workflow: &Value) {
    let experiment = to_experiment(workflow);
    let text = toml::to_string(&experiment).unwrap_or_default();
    let again: toml::Table = toml::from_str(&text).unwrap_or_default();
    assert_eq!(&to_workflow(&again), workflow, "{text}");
}

fn depth(value: &Value) -> usize {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return 0,
    };
    1 + inner.map(depth).max().unwrap_or(0)
}
