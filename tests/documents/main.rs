//! Checks the documents. For example, links must have a target, and reference pages must match the
//! program.
//!
//! Generated pages below `docs/reference` name their source in the first line. After a change of a
//! setting, a metric or an option, regenerate these pages with
//! `UPDATE_DOCUMENTS=1 cargo test --test documents`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod copies;
mod dashboards;
mod examples;
mod findings;
mod journeys;
mod links;
mod metrics;
mod process;
mod readme;
mod records;
mod security;
mod settings;
mod sizing;
mod urls;

use std::path::{Path, PathBuf};

/// Returns the root folder of the repository.
fn project_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a generated page with the committed page. If `UPDATE_DOCUMENTS` is set, writes the page
/// instead.
fn assert_page_is_current(page: &str, generated: &str) {
    assert_file_is_current(&format!("docs/reference/{page}"), generated);
}

/// Does the same as [`assert_page_is_current`] for any file of the repository.
fn assert_file_is_current(file: &str, generated: &str) {
    let path = project_root().join(file);
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let committed = read_text(&path);
    assert!(
        committed == generated,
        "{file} is out of date; run UPDATE_DOCUMENTS=1 cargo test --test documents, \
         and commit the result"
    );
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}
