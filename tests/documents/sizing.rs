//! Checks that the sizing page is computed from measured results in the repository.

use std::process::Command;

use crate::project_root;

#[test]
fn the_sizing_page_is_computed_from_the_measured_results() {
    let output = Command::new("python3")
        .args(["bench/sizing.py", "--check"])
        .current_dir(project_root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
