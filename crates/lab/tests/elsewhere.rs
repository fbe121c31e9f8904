//! Documents of others: taken as far as documents in use keep to the standard, strictly told where
//! they do not, and nothing of them lost on the way to TOML and back.

#![allow(clippy::unwrap_used)]

use lab::nbmp::{Kind, Level, read, to_experiment, to_workflow, validate};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// In the form of the public ones (`nbmp/elsewhere/README.md`), with what a strict reader misses.
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

fn paths(document: &Value, kind: Kind, level: Level) -> Vec<String> {
    let found = validate(document, kind, level, &[]);
    found.into_iter().map(|offence| offence.path).collect()
}

/// There and back, by way of TOML as text.
fn comes_back(document: &Value) {
    let text = toml::to_string_pretty(&to_experiment(document)).unwrap();
    let again: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(&to_workflow(&again), document, "{text}");
}

#[test]
fn documents_in_their_form_are_taken_and_strictly_told() {
    for (text, missed) in OURS {
        let document = read(text.as_bytes()).unwrap();
        assert_eq!(paths(&document, Kind::Workflow, Level::Lax), [""; 0]);
        let strict = paths(&document, Kind::Workflow, Level::Strict);
        assert_eq!(strict, missed.lines().collect::<Vec<_>>());
        comes_back(&document);
    }
    let task = include_str!("nbmp/elsewhere/copy.tdd.json");
    let task = read(task.as_bytes()).unwrap();
    assert_eq!(paths(&task, Kind::Task, Level::Lax), [""; 0]);
    let strict = paths(&task, Kind::Task, Level::Strict);
    for missed in ["$.request", "$.processing", "$.general['nbmp-brand']"] {
        assert!(strict.iter().any(|path| path == missed), "{strict:?}");
    }
    comes_back(&task);
}

/// A folder of the repository's, or beside it.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

#[test]
fn documents_of_others_are_taken() {
    let brought = std::fs::read_dir(folder("target/nbmp"));
    let all: Vec<PathBuf> = brought
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    if all.is_empty() {
        println!("SKIPPED documents_of_others_are_taken: scripts/nbmp.sh could not bring them");
        return;
    }
    assert_eq!(all.len(), 10, "{all:?}");
    for path in all {
        let document = read(&std::fs::read(&path).unwrap()).unwrap();
        let kind = match path.extension().and_then(|extension| extension.to_str()) {
            Some("tdd") => Kind::Task,
            _ => Kind::Workflow,
        };
        let lax = validate(&document, kind, Level::Lax, &[]);
        assert_eq!(lax, [], "{}", path.display());
        let strict = paths(&document, kind, Level::Strict);
        assert!(strict.len() > 10, "{}: {strict:?}", path.display());
        assert!(strict.iter().all(|path| path.starts_with("$.")));
        comes_back(&document);
    }
}

#[test]
fn a_document_that_keeps_to_the_standard_is_strictly_right() {
    let path = folder("../shared/reference/nbmp-example.wdd.json");
    let Ok(text) = std::fs::read(path) else {
        println!("SKIPPED a_document_that_keeps_to_the_standard_is_strictly_right: not here");
        return;
    };
    let document = read(&text).unwrap();
    assert_eq!(validate(&document, Kind::Workflow, Level::Strict, &[]), []);
    comes_back(&document);
}
