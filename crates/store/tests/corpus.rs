//! Runs the fuzz targets of the disk caches' file formats on their saved corpora.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

#[path = "../src/disk/tier/format.rs"]
mod format;
#[path = "../src/disk/record.rs"]
mod record;

#[path = "../../../fuzz/bodies/kept.rs"]
mod kept_body;
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;
#[path = "../../../fuzz/bodies/shelved.rs"]
mod shelved_body;

#[test]
fn replays_stored_values() {
    replay::replay_corpus("kept", kept_body::run);
}

#[test]
fn replays_stored_objects() {
    replay::replay_corpus("shelved", shelved_body::run);
}
