//! Replays the saved inputs of the fuzz test for range and conditional requests, to detect
//! regressions.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use net::{conditional, range};

#[path = "../../../fuzz/bodies/range.rs"]
mod body;
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;

#[test]
fn saved_range_cases_still_hold() {
    replay::replay_corpus("range", body::run);
}
