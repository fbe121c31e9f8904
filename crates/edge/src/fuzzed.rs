//! Entry points of the fuzz targets. Their code is in `fuzz/bodies`, with that of the other crates.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/bodies/answer.rs"]
pub mod answer;
#[path = "../../../fuzz/bodies/cmcd.rs"]
pub mod cmcd;
#[path = "../../../fuzz/bodies/fresh.rs"]
pub mod fresh;
#[path = "../../../fuzz/bodies/request.rs"]
pub mod request;
#[path = "../../../fuzz/bodies/rules.rs"]
pub mod rules;
#[path = "../../../fuzz/bodies/wire.rs"]
mod wire;

#[cfg(test)]
mod tests {
    /// Replays the stored corpus.
    fn replay(target: &str, run: impl Fn(&[u8])) {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let files = std::fs::read_dir(corpus.join(target)).unwrap();
        let count = files
            .map(|file| run(&std::fs::read(file.unwrap().path()).unwrap()))
            .count();
        assert!(count > 2, "the corpus is there");
    }

    #[test]
    fn replays_freshness_corpus() {
        replay("fresh", super::fresh::run);
    }

    #[test]
    fn replays_cmcd_corpus() {
        replay("cmcd", super::cmcd::run);
    }

    #[test]
    fn replays_request_corpus() {
        replay("request", super::request::run_case);
    }

    #[test]
    fn replays_answer_corpus() {
        replay("answer", super::answer::run_case);
    }

    #[test]
    fn replays_rules_corpus() {
        replay("rules", super::rules::run_case);
    }
}
