//! Replays what fuzzing kept, so that what was once found stays fixed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

#[path = "../../../fuzz/bodies/boxes.rs"]
mod boxes;
#[path = "../../../fuzz/bodies/indexer.rs"]
mod indexer;
#[path = "../../../fuzz/bodies/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/bodies/references.rs"]
mod references;
#[path = "../../../fuzz/bodies/ts.rs"]
mod ts;

/// Runs `body` on each file of a target's corpus.
fn replay(target: &str, body: impl Fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut seen = 0;
    for entry in std::fs::read_dir(root.join(target)).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        body(&bytes);
        seen += 1;
    }
    assert!(seen > 10, "only {seen} files for {target}");
}

#[test]
fn boxes_corpus() {
    replay("boxes", boxes::run);
}

#[test]
fn indexer_corpus() {
    replay("indexer", indexer::run);
}

#[test]
fn hls_corpus() {
    replay("hls", manifest::run_hls);
}

#[test]
fn mpd_corpus() {
    replay("mpd", manifest::run_mpd);
}

#[test]
fn references_corpus() {
    replay("references", references::run);
}

#[test]
fn ts_corpus() {
    replay("ts", ts::run);
}
