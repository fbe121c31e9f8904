//! Checks the code itself: imports between crates and modules, type names, file lengths, banned
//! words, and the commit-message check.

#![allow(clippy::unwrap_used)]

#[path = "tidy/commit_message.rs"]
mod commit_message;
#[path = "tidy/module_cycles.rs"]
mod module_cycles;
#[path = "tidy/module_names.rs"]
mod module_names;
#[path = "tidy/rust_source.rs"]
mod rust_source;
#[path = "tidy/type_names.rs"]
mod type_names;

use rust_source::without_tests;
use std::path::{Path, PathBuf};
use std::{fs, process::Command};

/// The architecture: each crate, and the crates that it may import. To allow an import, edit this
/// table and ARCHITECTURE.md.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("media", &[]),
    ("net", &[]),
    ("store", &["http1", "trace", "upstream"]),
    ("origin", &["media", "net", "store", "trace", "upstream"]),
    ("edge", &["http1", "net", "store", "trace", "upstream"]),
    ("load", &["http1", "media", "net", "stats"]),
    ("lab", &["net", "stats"]),
    ("stats", &[]),
    ("http1", &[]),
    ("trace", &["upstream"]),
    ("upstream", &["http1"]),
];

/// Crates that the binary may import. The binary contains no logic, so it needs only these
/// programs.
const PROGRAMS: &[&str] = &["origin", "edge", "load", "lab"];

/// Crates that must not use IO, a clock or threads.
const PURE: &[&str] = &["media", "stats", "http1"];

/// External crates that a pure crate must not depend on, directly or indirectly.
const IMPURE: &[&str] = &[
    "tokio",
    "hyper",
    "socket2",
    "mio",
    "memmap2",
    "reqwest",
    "object_store",
];

/// Standard library paths to IO, clocks and threads, which the source of a pure crate must not
/// contain.
const IMPURE_WORDS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
];

const FILE_LINES_MAX: usize = 600;

/// Strings that show unfinished work, or that depend on the machine of a file's author.
const BANNED: &[&str] = &["dbg!(", "todo!(", "FIXME", "/root/", "artifactory"];

/// Extensions of text files.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "sh", "pl", "js", "mjs", "json", "html", "css", "yml", "c", "py", "lock",
];

/// Folders without source files of this project.
const SKIPPED_FOLDERS: &[&str] = &[
    "target",
    ".git",
    "node_modules",
    "corpus",
    "artifacts",
    ".cache",
];

#[test]
fn crates_import_only_what_the_architecture_allows() {
    for (name, allowed) in MAY_IMPORT {
        let dir = root().join("crates").join(name);
        for found in local_dependencies(&dir) {
            assert!(
                allowed.contains(&found.as_str()),
                "crates/{name} may not import {found}; see ARCHITECTURE.md"
            );
        }
    }
    for found in local_dependencies(&root()) {
        assert!(
            PROGRAMS.contains(&found.as_str()),
            "the binary may not import {found}; see ARCHITECTURE.md"
        );
    }
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let listed = MAY_IMPORT.iter().any(|(listed, _)| *listed == name);
        assert!(listed, "crates/{name} is not in MAY_IMPORT");
    }
}

#[test]
fn pure_crates_do_no_io() {
    for pure in PURE {
        let tree = run_cargo(&["tree", "-p", pure, "--edges", "normal", "--prefix", "none"]);
        assert!(tree.starts_with(&format!("{pure} ")), "{tree}");
        for line in tree.lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            assert!(!IMPURE.contains(&name), "{pure} depends on {name}");
        }
        for (path, text) in files(&root().join("crates").join(pure).join("src"), &["rs"]) {
            for word in IMPURE_WORDS {
                let found = without_tests(&text).contains(word);
                assert!(!found, "{}: {word} in a pure crate", path.display());
            }
        }
    }
}

#[test]
fn files_stay_below_the_length_limit() {
    for (path, text) in files(&root(), &["rs"]) {
        let lines = without_tests(&text).lines().count();
        assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines", path.display());
    }
}

#[test]
fn files_contain_no_banned_words() {
    let mut seen = 0;
    for (path, text) in files(&root(), TEXT) {
        seen += 1;
        if path.ends_with("tests/tidy.rs") {
            continue;
        }
        for word in BANNED {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        let lock = path.ends_with("package-lock.json");
        assert!(
            !(lock && text.contains("\"resolved\"")),
            "{}: names a registry; write it with --omit-lockfile-registry-resolved",
            path.display()
        );
    }
    assert!(seen > 20, "only {seen} files found: the walk is broken");
}

/// Returns the workspace crates that a crate imports, dev-dependencies excluded.
fn local_dependencies(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
    let is_local = |key: &str| MAY_IMPORT.iter().any(|(name, _)| *name == key);
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]")
            && !section.contains("dev-")
            && !section.contains("workspace")
        {
            let key = line.split(['=', '.', ' ']).next().unwrap();
            found.extend(is_local(key).then(|| key.to_string()));
        }
    }
    found
}

/// Returns the files below a folder that have one of these extensions, with their text.
fn files(dir: &Path, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                found.extend(files(&path, extensions));
            }
        } else if extensions.contains(&&*extension) {
            let text = fs::read(&path).unwrap_or_default();
            found.push((path, String::from_utf8_lossy(&text).into_owned()));
        }
    }
    found
}

fn run_cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
