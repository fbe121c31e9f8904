//! Reports of runs: live, final, and in comparison.

mod expectation;
pub mod html_report;
pub mod live_progress;
pub mod paired_comparison;
pub mod result_files;
pub mod text_summary;
pub mod throughput_knee;

pub use expectation::{Expectation, ExpectationError, ExpectationVerdict};

use crate::result::{LatencyHistogram, RunResult};
use serde::Serialize;
use std::collections::BTreeMap;

/// The JSON document of a run: a summary, then the whole result.
#[derive(Serialize)]
pub struct ResultDocument<'a> {
    /// The key figures.
    summary: ResultSummary,
    /// Expectations and whether they hold.
    expectations: Vec<CheckedExpectation>,
    #[serde(flatten)]
    run: &'a RunResult,
}

#[derive(Serialize)]
struct CheckedExpectation {
    expectation: String,
    holds: bool,
    measured: String,
}

#[derive(Serialize)]
struct ResultSummary {
    due: u64,
    requests: u64,
    errors: u64,
    late: u64,
    unsent: u64,
    rate_per_s: f64,
    bytes_per_s: f64,
    from_due_ms: BTreeMap<&'static str, f64>,
    from_sent_ms: BTreeMap<&'static str, f64>,
    first_byte_ms: BTreeMap<&'static str, f64>,
    lag_ms: BTreeMap<&'static str, f64>,
    fell_behind: bool,
}

/// The quantiles in every report.
pub(crate) const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// Returns the quantiles of a distribution, in milliseconds.
pub(crate) fn key_quantiles(times: &LatencyHistogram) -> BTreeMap<&'static str, f64> {
    let figure = |&(name, q): &(&'static str, f64)| match name {
        "min" => (name, times.min_ms()),
        "max" => (name, times.max_ms()),
        _ => (name, times.quantile_ms(q)),
    };
    QUANTILES.iter().map(figure).collect()
}

impl<'a> ResultDocument<'a> {
    /// Creates the document of a run.
    pub fn new(run: &'a RunResult, expected: &[Expectation]) -> ResultDocument<'a> {
        let total = run.total();
        let wall = run.wall_s.max(1e-9);
        let checked = expected.iter().map(|expectation| {
            let verdict = expectation.evaluate(run);
            CheckedExpectation {
                expectation: expectation.to_string(),
                holds: verdict.holds,
                measured: verdict.found,
            }
        });
        ResultDocument {
            summary: ResultSummary {
                due: run.due(),
                requests: total.requests,
                errors: total.error_count(),
                late: total.late,
                unsent: run.unsent,
                rate_per_s: total.requests as f64 / wall,
                bytes_per_s: total.bytes as f64 / wall,
                from_due_ms: key_quantiles(&total.from_due),
                from_sent_ms: key_quantiles(&total.from_sent),
                first_byte_ms: key_quantiles(&total.first_byte),
                lag_ms: key_quantiles(&run.lag),
                fell_behind: run.fell_behind(),
            },
            expectations: checked.collect(),
            run,
        }
    }
}
