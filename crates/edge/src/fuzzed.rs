//! Entry points of the fuzz targets. The code of all crates' fuzz targets is in `fuzz/bodies`.
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
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay_corpus as replay;

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
