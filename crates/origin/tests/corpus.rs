//! Replays the corpora of the `route` and `ism` fuzz targets, so that fixed bugs stay fixed.
#![allow(clippy::unwrap_used, missing_docs)]

use origin::{references, route};

#[path = "../../../fuzz/bodies/route.rs"]
mod body;

#[path = "../../../fuzz/bodies/ism.rs"]
mod ism;

#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;

#[test]
fn route_corpus_passes() {
    replay::replay_corpus("route", body::run);
}

#[test]
fn reference_corpus_passes() {
    replay::replay_corpus("ism", ism::run);
}
