//! Reports of runs: live progress, final results, and comparisons.

mod expectation;
pub mod html_report;
mod input_file;
pub mod live_progress;
mod number_format;
pub mod paired_comparison;
pub(crate) mod percentiles;
pub mod result_files;
mod run_description;
pub mod text_summary;
pub mod throughput_knee;
mod url_group_table;

pub use expectation::{Expectation, ExpectationError, ExpectationVerdict};

use crate::result::{LatencyHistogram, RunResult};
use percentiles::{KeyQuantiles, QUANTILES};
use serde::Serialize;
use std::collections::BTreeMap;

/// The JSON document of a run contains a summary, and then the whole result.
#[derive(Serialize)]
pub struct ResultDocument<'a> {
    /// The key figures of the run.
    summary: ResultSummary,
    /// The expectations, and whether each expectation holds.
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
    from_due_ms: KeyQuantiles,
    from_sent_ms: KeyQuantiles,
    first_byte_ms: KeyQuantiles,
    /// Percentiles of the generator's lateness, even if there are few samples. The lateness is not
    /// a result, but it shows whether the run is valid.
    lag_ms: BTreeMap<&'static str, f64>,
    fell_behind: bool,
}

impl<'a> ResultDocument<'a> {
    /// Creates the document of a run.
    pub fn new(run: &'a RunResult, expected: &[Expectation]) -> ResultDocument<'a> {
        let total = run.merged_stats();
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
                due: run.due_count(),
                requests: total.requests,
                errors: total.error_count(),
                late: total.late,
                unsent: run.unsent,
                rate_per_s: total.requests as f64 / wall,
                bytes_per_s: total.bytes as f64 / wall,
                from_due_ms: KeyQuantiles::from_histogram(&total.from_due),
                from_sent_ms: KeyQuantiles::from_histogram(&total.from_sent),
                first_byte_ms: KeyQuantiles::from_histogram(&total.first_byte),
                lag_ms: all_quantiles(&run.lag),
                fell_behind: run.fell_behind(),
            },
            expectations: checked.collect(),
            run,
        }
    }
}

fn all_quantiles(times: &LatencyHistogram) -> BTreeMap<&'static str, f64> {
    let figure = |&(name, share): &(&'static str, f64)| match name {
        "min" => (name, times.min_ms()),
        "max" => (name, times.max_ms()),
        _ => (name, times.quantile_ms(share)),
    };
    QUANTILES.iter().map(figure).collect()
}
