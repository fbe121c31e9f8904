//! Replays the fuzzing corpus of the disk caches' file formats.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

#[path = "../src/disk/tier/format.rs"]
mod format;
#[path = "../src/disk/record.rs"]
mod record;

#[path = "../../../fuzz/bodies/kept.rs"]
mod kept_body;
#[path = "../../../fuzz/bodies/shelved.rs"]
mod shelved_body;

fn replay_corpus(target: &str, run: impl Fn(&[u8])) -> usize {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(corpus.join(target)).unwrap();
    files
        .map(|file| run(&std::fs::read(file.unwrap().path()).unwrap()))
        .count()
}

#[test]
fn replays_stored_values() {
    assert!(
        replay_corpus("kept", kept_body::run) > 10,
        "the corpus is there"
    );
}

#[test]
fn replays_stored_objects() {
    assert!(
        replay_corpus("shelved", shelved_body::run) > 3,
        "the corpus is there"
    );
}
