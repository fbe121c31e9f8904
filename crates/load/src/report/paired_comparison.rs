//! Compares two configurations by interleaved pairs of runs. Reports ratios with confidence
//! intervals over the pairs, and the whole latency distributions.

use super::number_format::format_ms;
use super::percentiles::quantile_if_supported;
use super::run_description::list_run_facts;
use crate::result::{LatencyHistogram, RunResult};
use stats::PairedRatio;
use std::fmt::Write;

/// The name of a compared quantity, and a function that returns the value of this quantity in a
/// run. The function returns none if the run has no reliable value, for example if fewer than ten
/// samples are beyond a percentile.
type ComparedQuantity = (&'static str, fn(&RunResult) -> Option<f64>);

const QUANTITIES: [ComparedQuantity; 5] = [
    ("median latency from the due time", |run| {
        due_latency_ms(run, 0.5)
    }),
    ("p99 of the latency from the due time", |run| {
        due_latency_ms(run, 0.99)
    }),
    ("median latency from sending", |run| {
        sent_latency_ms(run, 0.5)
    }),
    ("p99 of the latency from sending", |run| {
        sent_latency_ms(run, 0.99)
    }),
    ("body bytes per second", |run| {
        (run.wall_s > 0.0).then(|| run.merged_stats().bytes as f64 / run.wall_s)
    }),
];

fn due_latency_ms(run: &RunResult, share: f64) -> Option<f64> {
    // A closed loop has no due times.
    let of = run.merged_stats().from_due;
    (run.due_count() > 0).then(|| quantile_if_supported(&of, share))?
}

fn sent_latency_ms(run: &RunResult, share: f64) -> Option<f64> {
    quantile_if_supported(&run.merged_stats().from_sent, share)
}

/// Two configurations, A and B, with their runs in order. `a[k]` and `b[k]` are a pair, because
/// they ran one after the other.
pub struct RunComparison {
    a: Vec<RunResult>,
    b: Vec<RunResult>,
    names: [String; 2],
}

impl RunComparison {
    /// Creates the comparison of the runs of A and B. `names` are the names of A and B.
    pub fn new(a: Vec<RunResult>, b: Vec<RunResult>, names: (String, String)) -> RunComparison {
        RunComparison {
            a,
            b,
            names: [names.0, names.1],
        }
    }

    /// Returns the names of A and B.
    pub fn names(&self) -> [&str; 2] {
        self.names.each_ref().map(String::as_str)
    }

    /// Returns the merged result of all runs of A, and the merged result of all runs of B. Each
    /// result has the name of its configuration.
    pub fn merged_runs(&self) -> [RunResult; 2] {
        let merge = |runs: &[RunResult], name: &str| RunResult {
            name: name.to_owned(),
            ..RunResult::merge_runs(runs.to_vec())
        };
        let [name_a, name_b] = self.names();
        [merge(&self.a, name_a), merge(&self.b, name_b)]
    }

    /// Returns the ratio B/A of each quantity that has a value in all runs of all pairs.
    pub fn ratios(&self) -> Vec<(&'static str, PairedRatio)> {
        let pairs = self.a.len().min(self.b.len());
        let ratio = |(name, quantity): ComparedQuantity| {
            let values = |runs: &[RunResult]| -> Option<Vec<f64>> {
                runs.iter().take(pairs).map(quantity).collect()
            };
            let ratio = PairedRatio::from_pairs(&values(&self.b)?, &values(&self.a)?)?;
            Some((name, ratio))
        };
        QUANTITIES.into_iter().filter_map(ratio).collect()
    }

    /// Describes the first ratio in one sentence, with its confidence interval or its range.
    pub fn describe_result(&self) -> String {
        let [a, b] = self.names();
        match self.ratios().first() {
            None => format!("{b} and {a} have no quantity that all runs measured."),
            Some((name, ratio)) => format!(
                "{b} has {:.3} times the {name} of {a} ({}).",
                ratio.median,
                describe_certainty(ratio)
            ),
        }
    }

    /// Formats the comparison as text.
    pub fn format_summary(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_summary(&mut text);
        text
    }

    fn write_summary(&self, out: &mut String) -> std::fmt::Result {
        let [a, b] = self.names();
        writeln!(out, "{}", self.describe_result())?;
        let (what, interval) = (format!("{b} / {a}"), interval_heading(self.a.len()));
        writeln!(out, "\n{what:<38}{:>9}  {interval:<18}each pair", "median")?;
        for (name, ratio) in self.ratios() {
            let pairs = ratio.rounds.iter().map(|pair| format!("{pair:.3}"));
            let (pairs, ends) = (pairs.collect::<Vec<_>>().join(" "), format_interval(&ratio));
            writeln!(out, "{name:<38}{:>9.3}  {ends:<18}{pairs}", ratio.median)?;
        }
        for (side, run) in ["A", "B"].into_iter().zip(self.merged_runs()) {
            let unit = if run.generators == 1 { "run" } else { "runs" };
            writeln!(out, "\n{side}: {}, {} {unit}", run.name, run.generators)?;
            for (fact, value) in list_run_facts(&run) {
                writeln!(out, "   {fact:<13}{value}")?;
            }
        }
        self.write_distribution(out)?;
        for run in self.a.iter().chain(&self.b).filter(|run| run.fell_behind()) {
            writeln!(out, "{} fell behind its schedule; repeat the run", run.name)?;
        }
        Ok(())
    }

    /// Writes a table of the latency distributions. Each row contains a latency, and the shares of
    /// requests of A and of B that took at most this long.
    fn write_distribution(&self, out: &mut String) -> std::fmt::Result {
        let closed = self.a.iter().chain(&self.b).any(|run| run.due_count() == 0);
        let [of_a, of_b] = self.merged_runs().map(|run| match closed {
            true => run.merged_stats().from_sent,
            false => run.merged_stats().from_due,
        });
        let since = if closed {
            "from sending"
        } else {
            "from the due time"
        };
        writeln!(
            out,
            "\nlatency {since}, all runs merged ({} and {} requests): share of requests within a time",
            of_a.count(),
            of_b.count()
        )?;
        writeln!(out, "{:>12}{:>10}{:>10}", "ms", "A", "B")?;
        for share in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] {
            let Some(ms) = quantile_if_supported(&of_a, share) else {
                continue;
            };
            let percent = |times: &LatencyHistogram| times.share_at_most(ms) * 100.0;
            let (a, b) = (percent(&of_a), percent(&of_b));
            writeln!(out, "{:>12}{a:>9.2}%{b:>9.2}%", format_ms(ms))?;
        }
        writeln!(out)
    }
}

/// Describes the confidence interval of a ratio. If there are too few pairs for an interval,
/// describes the range of the ratios of the pairs.
pub(super) fn describe_certainty(ratio: &PairedRatio) -> String {
    let pairs = ratio.rounds.len();
    match ratio.interval {
        Some(_) => format!("95 % interval {}, {pairs} pairs", format_interval(ratio)),
        None if pairs == 1 => "one pair; an interval needs six".into(),
        None => format!("range of {pairs} pairs {}", format_interval(ratio)),
    }
}

/// Formats the ends of the confidence interval of a ratio. If there are too few pairs for an
/// interval, formats the ends of the range.
pub(super) fn format_interval(ratio: &PairedRatio) -> String {
    let range = ratio.range();
    let [low, high] = ratio
        .interval
        .map_or(range, |within| [within.low, within.high]);
    format!("{low:.3} to {high:.3}")
}

/// Returns the heading of the table column that contains the intervals. If there are too few pairs
/// for intervals, the column contains ranges.
pub(super) fn interval_heading(pairs: usize) -> String {
    match pairs {
        0..6 => format!("range of {pairs}"),
        _ => "95 % interval".into(),
    }
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
            requests: 30,
            bytes: 300,
            ..RequestStats::default()
        };
        for k in (1..=3).cycle().take(30) {
            cell.from_due.record(Duration::from_millis(format_ms * k));
            cell.from_sent.record(Duration::from_millis(format_ms * k));
        }
        let kinds = [(RequestKind::Other, cell)].into();
        RunResult {
            wall_s: 1.0,
            generators: 1,
            steps: vec![StepResult {
                kinds,
                due: 30,
                ..StepResult::default()
            }],
            ..RunResult::default()
        }
    }

    fn compare<const N: usize>(a: [u64; N], b: [u64; N]) -> RunComparison {
        let names = ("nginx".to_owned(), "headwater".to_owned());
        RunComparison::new(a.map(test_run).into(), b.map(test_run).into(), names)
    }

    #[test]
    fn ratios_are_computed_per_pair() {
        // The latencies of both sides grow from pair to pair, but the ratio of each pair stays the
        // same.
        let slower = [10, 20, 40, 80, 90, 100];
        let ratios = compare(slower, slower.map(|ms| 2 * ms)).ratios();
        // The two quantities with a p99 are missing, because each run has too few samples.
        assert_eq!(ratios.len(), 3);
        let p50 = &ratios[0].1;
        assert!((p50.median - 2.0).abs() < 0.01 && (p50.geometric.unwrap() - 2.0).abs() < 0.01);
        let ConfidenceInterval { low, high } = p50.interval.unwrap();
        assert!(low > 1.98 && high < 2.02, "{low} {high}");
    }

    #[test]
    fn fewer_than_six_pairs_have_a_range_and_no_interval() {
        let few = compare([10, 10, 10], [5, 20, 10]);
        assert_eq!(few.ratios()[0].1.interval, None);
        let text = few.format_summary();
        assert!(text.contains("range of 3 pairs 0.5"), "{text}");
        assert!(!text.contains("95 % interval 0"), "{text}");
    }

    #[test]
    fn the_ratio_with_its_interval_is_first() {
        let text = compare([10; 6], [5, 5, 5, 5, 5, 6]).format_summary();
        let first = text.lines().next().unwrap();
        for word in ["headwater has 0.5", "of nginx", "95 % interval", "6 pairs"] {
            assert!(first.contains(word), "{word}: {first}");
        }
    }
}
