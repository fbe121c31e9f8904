//! Fuzz targets of the server. Their code is in `fuzz/bodies`, next to the fuzz targets of the
//! other crates.
#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/bodies/head.rs"]
pub mod head;
#[path = "../../../fuzz/bodies/wire.rs"]
mod wire;

#[cfg(test)]
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn saved_heads_are_parsed() {
        super::replay::replay_corpus("head", super::head::run_case);
    }
}
