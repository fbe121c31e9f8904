//! Replays the corpora of the `route` and `ism` fuzz targets, so that fixed bugs stay fixed.
#![allow(clippy::unwrap_used, missing_docs)]

use origin::{references, route};

#[path = "../../../fuzz/bodies/route.rs"]
mod body;

#[path = "../../../fuzz/bodies/ism.rs"]
mod ism;

/// Runs `body` on each file of a target's corpus.
fn replay(target: &str, body: impl Fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(corpus.join(target)).unwrap();
    let count = files
        .map(|file| body(&std::fs::read(file.unwrap().path()).unwrap()))
        .count();
    assert!(count > 10, "the corpus is there");
}

#[test]
fn route_corpus_passes() {
    replay("route", body::run);
}

#[test]
fn reference_corpus_passes() {
    replay("ism", ism::run);
}
