//! What fuzzing has found, and what it begins with, stays judged.

#![allow(clippy::unwrap_used)]

use lab::nbmp;

#[path = "../../../fuzz/bodies/wdd.rs"]
mod wdd;

#[test]
fn descriptions() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wdd");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        wdd::run(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}
