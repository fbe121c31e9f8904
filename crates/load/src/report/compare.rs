//! Two arrangements beside each other: runs in interleaved pairs, ratios of medians with bootstrap
//! intervals over pairs, and whole distributions. Never a bare mean.

use super::text::ms;
use crate::result::{Run, Times};
use stats::Ratio;
use std::fmt::Write;

/// What is compared: its name, and the quantity of a run.
type Quantity = (&'static str, fn(&Run) -> f64);

const QUANTITIES: [Quantity; 5] = [
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
    ("bytes a second", |run| {
        run.total().bytes as f64 / run.wall_s
    }),
];

/// The ratios of pairs of runs, B to A, by what was compared: `a[k]` and `b[k]` were made one after
/// the other.
pub fn ratios(a: &[Run], b: &[Run], seed: u64) -> Vec<(&'static str, Ratio)> {
    let pairs = a.len().min(b.len());
    let ratio = |(name, quantity): Quantity| {
        let of = |runs: &[Run]| -> Vec<f64> { runs.iter().take(pairs).map(quantity).collect() };
        Some((name, Ratio::of(&of(b), &of(a), seed)?))
    };
    QUANTITIES.into_iter().filter_map(ratio).collect()
}

/// The comparison in words and figures.
pub fn summary(a: &[Run], b: &[Run], names: (&str, &str), seed: u64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, a, b, names, seed);
    text
}

fn write(
    out: &mut String,
    a: &[Run],
    b: &[Run],
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
    for (name, ratio) in ratios(a, b, seed) {
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
    let all = |runs: &[Run]| {
        let mut times = Times::default();
        runs.iter().for_each(|run| times.add(&run.total().from_due));
        times
    };
    let (all_a, all_b) = (all(a), all(b));
    writeln!(
        out,
        "\nlatency from due, all runs together; share of requests within each time (ECDF)"
    )?;
    writeln!(out, "{:>12}{:>10}{:>10}", "ms", "A", "B")?;
    for q in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let at = all_a.quantile_ms(q);
        let (in_a, in_b) = (all_a.share_at_most(at), all_b.share_at_most(at));
        writeln!(
            out,
            "{:>12}{:>9.2}%{:>9.2}%",
            ms(at),
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
                "{name}: {} fell behind its own schedule; measure it again",
                run.name
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Kind;
    use crate::result::{Cell, Stretch};
    use stats::Interval;
    use std::time::Duration;

    fn run(ms: u64) -> Run {
        let mut cell = Cell {
            requests: 3,
            bytes: 300,
            ..Cell::default()
        };
        for k in [1, 2, 3] {
            cell.from_due.record(Duration::from_millis(ms * k));
            cell.from_sent.record(Duration::from_millis(ms * k));
        }
        let kinds = [(Kind::Other, cell)].into();
        Run {
            wall_s: 1.0,
            steps: vec![Stretch {
                kinds,
                ..Stretch::default()
            }],
            ..Run::default()
        }
    }

    #[test]
    fn ratios_are_paired() {
        // The machine slows down from pair to pair; the ratio stays.
        let a: Vec<Run> = [10, 20, 40, 80].map(run).into();
        let b: Vec<Run> = [20, 40, 80, 160].map(run).into();
        let ratios = ratios(&a, &b, 1);
        assert_eq!(ratios.len(), 5);
        let p50 = &ratios[0].1;
        assert!((p50.median - 2.0).abs() < 0.01 && (p50.geometric - 2.0).abs() < 0.01);
        let Interval { low, high } = p50.interval.unwrap();
        assert!(low > 1.98 && high < 2.02, "{low} {high}");
    }

    #[test]
    fn intervals_widen_with_scatter_and_need_three_pairs() {
        let a: Vec<Run> = [10, 10, 10, 10].map(run).into();
        let b: Vec<Run> = [5, 20, 10, 40].map(run).into();
        let Interval { low, high } = ratios(&a, &b, 1)[0].1.interval.unwrap();
        assert!(low < 1.0 && high > 2.0, "{low} {high}");
        assert_eq!(ratios(&a[..2], &b[..2], 1)[0].1.interval, None);
        assert!(summary(&a, &b, ("x", "y"), 1).contains("B / A"));
    }
}
