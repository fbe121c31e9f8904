//! Checks that a type's name is unique within its crate.

use super::rust_source::without_tests;
use super::{files, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Exceptions: a crate, and a name that several types of the crate may share. Rename a type instead
/// of adding an entry.
const SHARED_NAMES: &[(&str, &str)] = &[];

#[test]
fn type_names_are_unique_within_their_crate() {
    let shared = shared_names();
    let is_exception = |krate: &str, name: &str| SHARED_NAMES.contains(&(krate, name));
    let problems: Vec<_> = shared
        .iter()
        .filter(|((krate, name), _)| !is_exception(krate, name))
        .map(|((krate, name), paths)| format!("{krate}: several types are named {name}: {paths:?}"))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_exception_is_needed() {
    let shared = shared_names();
    let is_stale = |(krate, name): &&(&str, &str)| {
        !shared.contains_key(&(krate.to_string(), name.to_string()))
    };
    let stale: Vec<_> = SHARED_NAMES.iter().filter(is_stale).collect();
    assert!(stale.is_empty(), "delete these exceptions: {stale:?}");
}

#[test]
fn declarations_are_found_in_every_form() {
    let source = "pub(crate) struct One<T>(T);\n    enum Two {}\n// struct Not\npub trait Three {}\n\
        type Four = u8;\nunion Five {}\nlet structure = 1;\n";
    let names: Vec<_> = source.lines().filter_map(declared_type).collect();
    assert_eq!(names, ["One", "Two", "Three", "Five"]);
}

/// Returns all crates with the folder of their sources. Tests and examples are not included,
/// because they are separate crates.
fn crates() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(root().join("crates")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut crates: Vec<_> = folders
        .map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            (name, folder.join("src"))
        })
        .collect();
    crates.push(("headwater".to_owned(), root().join("src")));
    crates.push(("baselines".to_owned(), root().join("baselines/src")));
    crates.retain(|(_, folder)| folder.is_dir());
    crates
}

/// Returns the names that several types of a crate share, with the files that declare these types.
/// The keys are the crate and the name.
fn shared_names() -> BTreeMap<(String, String), Vec<PathBuf>> {
    let mut shared = BTreeMap::new();
    for (krate, folder) in crates() {
        for (name, paths) in declared_types(&folder) {
            if paths.len() > 1 {
                shared.insert((krate.clone(), name), paths);
            }
        }
    }
    shared
}

/// Returns the files in which each type is declared, test modules excluded.
fn declared_types(folder: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut declared: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (path, text) in files(folder, &["rs"]) {
        if is_test_file(&path) {
            continue;
        }
        for name in without_tests(&text).lines().filter_map(declared_type) {
            let relative = path.strip_prefix(folder).unwrap().to_owned();
            declared.entry(name.to_owned()).or_default().push(relative);
        }
    }
    declared
}

pub(crate) fn is_test_file(path: &Path) -> bool {
    let is_test =
        |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "testing";
    path.iter().any(is_test)
}

/// Returns the type that a line of source declares. Ignores aliases and associated types, because
/// they declare no new type.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with("pub") {
        word = words.by_ref().find(|word| !word.ends_with(')'))?;
    }
    if !["struct", "enum", "trait", "union"].contains(&word) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&name[..end.unwrap_or(name.len())])
}
