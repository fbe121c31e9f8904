//! Fuzz cases of the server. Their bodies are in `fuzz/bodies`, next to those of the other crates.
#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/bodies/head.rs"]
pub mod head;
#[path = "../../../fuzz/bodies/wire.rs"]
mod wire;

#[cfg(test)]
mod tests {
    #[test]
    fn saved_heads_are_parsed() {
        let corpus =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/head");
        let files = std::fs::read_dir(corpus).unwrap();
        let count = files
            .map(|file| super::head::run_case(&std::fs::read(file.unwrap().path()).unwrap()))
            .count();
        assert!(count > 2, "the corpus is there");
    }
}
