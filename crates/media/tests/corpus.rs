//! Replays the fuzzing corpus, so that fixed bugs stay fixed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

#[path = "../../../fuzz/bodies/boxes.rs"]
mod boxes;
#[path = "../../../fuzz/bodies/cpix.rs"]
mod cpix;
#[path = "../../../fuzz/bodies/indexer.rs"]
mod indexer;
#[path = "../../../fuzz/bodies/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/bodies/references.rs"]
mod references;
#[path = "../../../fuzz/bodies/text.rs"]
mod text;
#[path = "../../../fuzz/bodies/ts.rs"]
mod ts;

/// Runs `body` on each file in the corpus of `target`.
fn replay_corpus(target: &str, body: impl Fn(&[u8])) {
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
fn the_boxes_corpus_is_replayed() {
    replay_corpus("boxes", boxes::run);
}

#[test]
fn the_indexer_corpus_is_replayed() {
    replay_corpus("indexer", indexer::run);
}

#[test]
fn the_cpix_corpus_is_replayed() {
    replay_corpus("cpix", cpix::run);
}

#[test]
fn the_hls_corpus_is_replayed() {
    replay_corpus("hls", manifest::run_hls);
}

#[test]
fn the_mpd_corpus_is_replayed() {
    replay_corpus("mpd", manifest::run_mpd);
}

#[test]
fn the_references_corpus_is_replayed() {
    replay_corpus("references", references::run);
}

#[test]
fn the_ts_corpus_is_replayed() {
    replay_corpus("ts", ts::run);
}

#[test]
fn the_text_corpus_is_replayed() {
    replay_corpus("text", text::run);
}
