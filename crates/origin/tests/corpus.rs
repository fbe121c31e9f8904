//! Replays what fuzzing the router has kept, so that what was once found stays fixed.
#![allow(clippy::unwrap_used, missing_docs)]

use origin::route;

#[path = "../../../fuzz/bodies/route.rs"]
mod body;

#[test]
fn routes() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/route");
    let files = std::fs::read_dir(corpus).unwrap();
    let count = files
        .map(|file| body::run(&std::fs::read(file.unwrap().path()).unwrap()))
        .count();
    assert!(count > 10, "the corpus is there");
}
