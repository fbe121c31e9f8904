//! Tests NBMP documents of other projects. The lenient level accepts the documents, and the strict
//! level finds their faults. Conversion to TOML and back loses nothing.

#![cfg(feature = "nbmp")]
#![allow(clippy::unwrap_used)]

use lab::nbmp::{
    DescriptionKind, ValidationStrictness, parse_bounded_json, to_experiment, to_workflow,
    validate_description,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Our own documents, which imitate public documents (`nbmp/elsewhere/README.md`). Each has a list
/// of the faults that strict validation finds.
const OURS: [(&str, &str); 2] = [
    (
        include_str!("nbmp/elsewhere/live.wdd.json"),
        include_str!("nbmp/elsewhere/live.strict.txt"),
    ),
    (
        include_str!("nbmp/elsewhere/pause.wdd.json"),
        include_str!("nbmp/elsewhere/pause.strict.txt"),
    ),
];

fn fault_paths(
    document: &Value,
    kind: DescriptionKind,
    level: ValidationStrictness,
) -> Vec<String> {
    let found = validate_description(document, kind, level, &[]);
    found.into_iter().map(|offence| offence.path).collect()
}

/// Asserts that conversion to TOML text and back does not change a document.
fn assert_round_trip(document: &Value) {
    let text = toml::to_string_pretty(&to_experiment(document)).unwrap();
    let again: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(&to_workflow(&again), document, "{text}");
}

#[test]
fn documents_like_public_ones_are_accepted_leniently_and_refused_strictly() {
    for (text, missed) in OURS {
        let document = parse_bounded_json(text.as_bytes()).unwrap();
        assert_eq!(
            fault_paths(
                &document,
                DescriptionKind::Workflow,
                ValidationStrictness::Lenient
            ),
            [""; 0]
        );
        let strict = fault_paths(
            &document,
            DescriptionKind::Workflow,
            ValidationStrictness::Strict,
        );
        assert_eq!(strict, missed.lines().collect::<Vec<_>>());
        assert_round_trip(&document);
    }
    let task = include_str!("nbmp/elsewhere/copy.tdd.json");
    let task = parse_bounded_json(task.as_bytes()).unwrap();
    assert_eq!(
        fault_paths(&task, DescriptionKind::Task, ValidationStrictness::Lenient),
        [""; 0]
    );
    let strict = fault_paths(&task, DescriptionKind::Task, ValidationStrictness::Strict);
    for missed in ["$.request", "$.processing", "$.general['nbmp-brand']"] {
        assert!(strict.iter().any(|path| path == missed), "{strict:?}");
    }
    assert_round_trip(&task);
}

/// Returns the path of a folder. `name` is the folder's path relative to the root of the
/// repository.
fn repository_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

#[test]
fn public_documents_are_accepted() {
    let brought = std::fs::read_dir(repository_folder("target/nbmp"));
    let all: Vec<PathBuf> = brought
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    if all.is_empty() {
        println!("SKIPPED public_documents_are_accepted: scripts/nbmp.sh could not bring them");
        return;
    }
    assert_eq!(all.len(), 10, "{all:?}");
    for path in all {
        let document = parse_bounded_json(&std::fs::read(&path).unwrap()).unwrap();
        let kind = match path.extension().and_then(|extension| extension.to_str()) {
            Some("tdd") => DescriptionKind::Task,
            _ => DescriptionKind::Workflow,
        };
        let lax = validate_description(&document, kind, ValidationStrictness::Lenient, &[]);
        assert_eq!(lax, [], "{}", path.display());
        let strict = fault_paths(&document, kind, ValidationStrictness::Strict);
        assert!(strict.len() > 10, "{}: {strict:?}", path.display());
        assert!(strict.iter().all(|path| path.starts_with("$.")));
        assert_round_trip(&document);
    }
}

#[test]
fn a_conforming_public_document_is_strictly_valid() {
    let path = repository_folder("../shared/reference/nbmp-example.wdd.json");
    let Ok(text) = std::fs::read(path) else {
        println!("SKIPPED a_conforming_public_document_is_strictly_valid: not here");
        return;
    };
    let document = parse_bounded_json(&text).unwrap();
    assert_eq!(
        validate_description(
            &document,
            DescriptionKind::Workflow,
            ValidationStrictness::Strict,
            &[]
        ),
        []
    );
    assert_round_trip(&document);
}
