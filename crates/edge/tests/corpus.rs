//! Replays what fuzzing freshness and CMCD has kept.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

use edge::fresh;

#[path = "../src/cmcd.rs"]
mod cmcd;

#[path = "../../../fuzz/bodies/cmcd.rs"]
mod cmcd_body;
#[path = "../../../fuzz/bodies/fresh.rs"]
mod fresh_body;

fn replay(target: &str, run: impl Fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(corpus.join(target)).unwrap();
    let count = files
        .map(|file| run(&std::fs::read(file.unwrap().path()).unwrap()))
        .count();
    assert!(count > 2, "the corpus is there");
}

#[test]
fn freshness() {
    replay("fresh", fresh_body::run);
}

#[test]
fn what_players_say() {
    replay("cmcd", cmcd_body::run);
}
