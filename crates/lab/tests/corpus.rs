//! Replays the fuzzing corpus of descriptions.

#![cfg(feature = "nbmp")]
#![allow(clippy::unwrap_used)]

use lab::nbmp;

#[path = "../../../fuzz/bodies/wdd.rs"]
mod wdd;

#[test]
fn corpus_descriptions_are_validated() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wdd");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        wdd::run(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}
