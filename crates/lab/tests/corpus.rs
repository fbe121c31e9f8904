//! Replays the fuzzing corpus of NBMP descriptions.

#![cfg(feature = "nbmp")]
#![allow(clippy::unwrap_used)]

use lab::nbmp;

#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;
#[path = "../../../fuzz/bodies/wdd.rs"]
mod wdd;

#[test]
fn corpus_descriptions_are_validated() {
    replay::replay_corpus("wdd", wdd::run);
}
