//! Replays what fuzzing the disk cache's files has kept.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../src/disk/record.rs"]
mod record;

#[path = "../../../fuzz/bodies/kept.rs"]
mod body;

#[test]
fn kept() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/kept");
    let files = std::fs::read_dir(corpus).unwrap();
    let count = files
        .map(|file| body::run(&std::fs::read(file.unwrap().path()).unwrap()))
        .count();
    assert!(count > 10, "the corpus is there");
}
