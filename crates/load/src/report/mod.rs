//! What is said of runs: while they go on, when they are over, and beside each other.

pub mod compare;
mod expect;
pub mod html;
pub mod knee;
pub mod live;
pub mod read;
pub mod text;

pub use expect::{Expectation, Verdict};

use crate::result::{Run, Times};
use serde::Serialize;
use std::collections::BTreeMap;

/// A run as a JSON document: a summary for people and scripts, then all of it.
#[derive(Serialize)]
pub struct Document<'a> {
    /// The figures most asked for.
    summary: Summary,
    /// What was expected, and whether it holds.
    expectations: Vec<Held>,
    #[serde(flatten)]
    run: &'a Run,
}

#[derive(Serialize)]
struct Held {
    expectation: String,
    holds: bool,
    measured: String,
}

#[derive(Serialize)]
struct Summary {
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

/// The quantiles that every report shows.
pub(crate) const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// A distribution's figures, in milliseconds.
pub(crate) fn figures(times: &Times) -> BTreeMap<&'static str, f64> {
    let figure = |&(name, q): &(&'static str, f64)| match name {
        "min" => (name, times.min_ms()),
        "max" => (name, times.max_ms()),
        _ => (name, times.quantile_ms(q)),
    };
    QUANTILES.iter().map(figure).collect()
}

impl<'a> Document<'a> {
    /// The document of a run.
    pub fn new(run: &'a Run, expected: &[Expectation]) -> Document<'a> {
        let total = run.total();
        let wall = run.wall_s.max(1e-9);
        let held = expected.iter().map(|expectation| {
            let verdict = expectation.judge(run);
            Held {
                expectation: expectation.to_string(),
                holds: verdict.holds,
                measured: verdict.found,
            }
        });
        Document {
            summary: Summary {
                due: run.due(),
                requests: total.requests,
                errors: total.errors(),
                late: total.late,
                unsent: run.unsent,
                rate_per_s: total.requests as f64 / wall,
                bytes_per_s: total.bytes as f64 / wall,
                from_due_ms: figures(&total.from_due),
                from_sent_ms: figures(&total.from_sent),
                first_byte_ms: figures(&total.first_byte),
                lag_ms: figures(&run.lag),
                fell_behind: run.fell_behind(),
            },
            expectations: held.collect(),
            run,
        }
    }
}
