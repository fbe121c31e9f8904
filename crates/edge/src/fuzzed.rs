//! What fuzzing tries of the edge; its bodies lie beside those of all others, in `fuzz/bodies`.
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
    /// Replays what fuzzing has kept.
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
        replay("fresh", super::fresh::run);
    }

    #[test]
    fn what_players_say() {
        replay("cmcd", super::cmcd::run);
    }

    #[test]
    fn requests() {
        replay("request", super::request::try_it);
    }

    #[test]
    fn answers() {
        replay("answer", super::answer::try_it);
    }

    #[test]
    fn rules() {
        replay("rules", super::rules::try_it);
    }
}
