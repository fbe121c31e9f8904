//! Checks `docs/findings.md` by recomputing every verdict from the committed raw records.

use crate::process::run_to_end;
use crate::{assert_file_is_current, project_root, read_text};
use std::path::PathBuf;

#[test]
fn the_findings_are_those_of_the_committed_records() {
    let claims = project_root().join("experiments/claims/claims.toml");
    let folders = result_folders();
    let mut arguments = vec!["lab", "findings", "--claims", claims.to_str().unwrap()];
    arguments.extend(folders.iter().map(String::as_str));
    let page = run_to_end(&arguments);
    assert_file_is_current("docs/findings.md", &page);
}

#[test]
fn committed_records_reproduce_their_reports() {
    let mut count = 0;
    for folder in result_folders().into_iter().map(PathBuf::from) {
        if !folder.join("runs.jsonl.zst").exists() {
            continue;
        }
        let copy = tempfile::tempdir().unwrap();
        for name in ["document.toml", "machine.jsonl", "runs.jsonl.zst"] {
            std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
        }
        // Ignores the exit status, which depends on the verdicts of the claims.
        crate::process::run_with_any_status(&["lab", "report", copy.path().to_str().unwrap()]);
        let name = folder.display();
        let reports = [&folder, copy.path()].map(|folder| read_text(&folder.join("report.md")));
        assert!(
            reports[0] == reports[1],
            "{name}: `headwater lab report` gives another report.md; commit its result"
        );
        count += 1;
    }
    assert!(count > 0, "no folder below docs/results has raw records");
}

/// Returns the folders below docs/results, sorted by name.
fn result_folders() -> Vec<String> {
    let entries = std::fs::read_dir(project_root().join("docs/results")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let folders = paths.filter(|path| path.is_dir());
    let mut folders: Vec<String> = folders.map(|path| path.display().to_string()).collect();
    folders.sort();
    folders
}
