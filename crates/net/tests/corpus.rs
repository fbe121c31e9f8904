//! Replays the inputs that fuzzing of ranges and conditions has saved, to prevent regressions.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use net::{conditional, range};

#[path = "../../../fuzz/bodies/range.rs"]
mod body;

#[test]
fn saved_range_cases_still_hold() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/range");
    let files = std::fs::read_dir(corpus).unwrap();
    let count = files
        .map(|file| body::run(&std::fs::read(file.unwrap().path()).unwrap()))
        .count();
    assert!(count > 10, "the corpus is there");
}
