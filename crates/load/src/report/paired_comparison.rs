//! Compares two configurations by interleaved pairs of runs: ratios of medians with bootstrap
//! intervals over pairs, and whole distributions.

use super::text_summary::format_ms;
use crate::result::{LatencyHistogram, RunResult};
use stats::PairedRatio;
use std::fmt::Write;

/// Name and value of a compared quantity.
type ComparedQuantity = (&'static str, fn(&RunResult) -> f64);

const QUANTITIES: [ComparedQuantity; 5] = [
    ("from due, p50", |run| run.total().from_due.quantile_ms(0.5)),
    ("from due, p99", |run| {
        run.total().from_due.quantile_ms(0.99)
    }),
    ("from sent, p50", |run| {
        run.total().from_sent.quantile_ms(0.5)
    }),
    ("from sent, p99", |run| {
        run.total().from_sent.quantile_ms(0.99)
    }),
    ("bytes per second", |run| {
        run.total().bytes as f64 / run.wall_s
    }),
];

/// Returns the ratios B to A of each quantity over pairs; `a[k]` and `b[k]` ran one after the
/// other.
pub fn paired_ratios(
    a: &[RunResult],
    b: &[RunResult],
    seed: u64,
) -> Vec<(&'static str, PairedRatio)> {
    let pairs = a.len().min(b.len());
    let ratio = |(name, quantity): ComparedQuantity| {
        let of =
            |runs: &[RunResult]| -> Vec<f64> { runs.iter().take(pairs).map(quantity).collect() };
        Some((name, PairedRatio::from_pairs(&of(b), &of(a), seed)?))
    };
    QUANTITIES.into_iter().filter_map(ratio).collect()
}

/// Formats the comparison.
pub fn format_summary(a: &[RunResult], b: &[RunResult], names: (&str, &str), seed: u64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_comparison(&mut text, a, b, names, seed);
    text
}

fn write_comparison(
    out: &mut String,
    a: &[RunResult],
    b: &[RunResult],
    names: (&str, &str),
    seed: u64,
) -> std::fmt::Result {
    writeln!(
        out,
        "A: {} ({} runs)   B: {} ({} runs), paired in order",
        names.0,
        a.len(),
        names.1,
        b.len()
    )?;
    writeln!(
        out,
        "\n{:<18}{:>10}{:>12}{:>20}   each pair",
        "B / A", "median", "geometric", "95 % interval"
    )?;
    for (name, ratio) in paired_ratios(a, b, seed) {
        let interval = match ratio.interval {
            Some(within) => format!("[{:.3}, {:.3}]", within.low, within.high),
            None => "3 pairs needed".into(),
        };
        let pairs: Vec<String> = ratio
            .rounds
            .iter()
            .map(|pair| format!("{pair:.3}"))
            .collect();
        writeln!(
            out,
            "{:<18}{:>10.3}{:>12.3}{:>20}   {}",
            name,
            ratio.median,
            ratio.geometric,
            interval,
            pairs.join(" ")
        )?;
    }
    let all = |runs: &[RunResult]| {
        let mut times = LatencyHistogram::default();
        runs.iter().for_each(|run| times.add(&run.total().from_due));
        times
    };
    let (all_a, all_b) = (all(a), all(b));
    writeln!(
        out,
        "\nlatency from due, all runs merged; share of requests within each time (ECDF)"
    )?;
    writeln!(out, "{:>12}{:>10}{:>10}", "ms", "A", "B")?;
    for q in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let at = all_a.quantile_ms(q);
        let (in_a, in_b) = (all_a.share_at_most(at), all_b.share_at_most(at));
        writeln!(
            out,
            "{:>12}{:>9.2}%{:>9.2}%",
            format_ms(at),
            in_a * 100.0,
            in_b * 100.0
        )?;
    }
    for (name, run) in a
        .iter()
        .map(|run| ("A", run))
        .chain(b.iter().map(|run| ("B", run)))
    {
        if run.fell_behind() {
            writeln!(
                out,
                "{name}: {} fell behind its schedule; repeat the run",
                run.name
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RequestKind;
    use crate::result::{RequestStats, StepResult};
    use stats::ConfidenceInterval;
    use std::time::Duration;

    fn test_run(format_ms: u64) -> RunResult {
        let mut cell = RequestStats {
            requests: 3,
            bytes: 300,
            ..RequestStats::default()
        };
        for k in [1, 2, 3] {
            cell.from_due.record(Duration::from_millis(format_ms * k));
            cell.from_sent.record(Duration::from_millis(format_ms * k));
        }
        let kinds = [(RequestKind::Other, cell)].into();
        RunResult {
            wall_s: 1.0,
            steps: vec![StepResult {
                kinds,
                ..StepResult::default()
            }],
            ..RunResult::default()
        }
    }

    #[test]
    fn ratios_are_computed_per_pair() {
        // The machine slows down from pair to pair; the ratio stays the same.
        let a: Vec<RunResult> = [10, 20, 40, 80].map(test_run).into();
        let b: Vec<RunResult> = [20, 40, 80, 160].map(test_run).into();
        let ratios = paired_ratios(&a, &b, 1);
        assert_eq!(ratios.len(), 5);
        let p50 = &ratios[0].1;
        assert!((p50.median - 2.0).abs() < 0.01 && (p50.geometric - 2.0).abs() < 0.01);
        let ConfidenceInterval { low, high } = p50.interval.unwrap();
        assert!(low > 1.98 && high < 2.02, "{low} {high}");
    }

    #[test]
    fn intervals_widen_with_variance_and_need_three_pairs() {
        let a: Vec<RunResult> = [10, 10, 10, 10].map(test_run).into();
        let b: Vec<RunResult> = [5, 20, 10, 40].map(test_run).into();
        let ConfidenceInterval { low, high } = paired_ratios(&a, &b, 1)[0].1.interval.unwrap();
        assert!(low < 1.0 && high > 2.0, "{low} {high}");
        assert_eq!(paired_ratios(&a[..2], &b[..2], 1)[0].1.interval, None);
        assert!(format_summary(&a, &b, ("x", "y"), 1).contains("B / A"));
    }
}
