//! Replays the fuzzing corpus and mutations of its files, so that fixed bugs stay fixed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

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
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;
#[path = "../../../fuzz/bodies/text.rs"]
mod text;
#[path = "../../../fuzz/bodies/ts.rs"]
mod ts;

use replay::replay_corpus;

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
