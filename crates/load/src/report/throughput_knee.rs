//! Finds the knee, which is the offered load at which a server stops keeping up.

use crate::result::{RunResult, SecondStats, StepResult};
use serde::Serialize;

/// Maximum number of periods into which a profile without steps is divided.
const BINS: usize = 20;

/// The offered load and the achieved throughput of a step or a period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Requests due per second.
    pub offered_per_s: f64,
    /// Successful requests per second.
    pub achieved_per_s: f64,
    /// Tail latency from the due time, in milliseconds. All points use the same quantile, which is
    /// the highest quantile with enough samples in every step or every second. For a step, the
    /// quantile is computed over all requests of the step. For a period, the quantile is computed
    /// for each second, and `tail_ms` is the largest of these values.
    pub tail_ms: f64,
    /// Whether this point is the first point beyond the knee.
    pub knee: bool,
    /// Number of requests that were due.
    #[serde(skip)]
    pub due: u64,
}

/// Minimum growth of the load, in standard deviations. A smaller growth may be random.
const GROWTH_DEVIATIONS_MIN: f64 = 4.0;

/// Returns the points of a run in the order of time. Returns no points for a closed loop, or for a
/// run without per-second statistics. Also returns no points if the offered load does not grow,
/// because a constant rate has no knee.
pub fn load_points(run: &RunResult) -> Vec<LoadPoint> {
    let steps = match run.steps.as_slice() {
        [] => Vec::new(),
        [only] => split_into_bins(only),
        _ => run.steps.clone(),
    };
    let tail = TailQuantile::choose_tail_quantile(run);
    let points = steps.iter().filter_map(|step| load_point(run, step, tail));
    let mut points: Vec<LoadPoint> = points.collect();
    // The user chooses the loads of steps, so any growth is intended. Other profiles are divided
    // into periods, whose loads vary randomly.
    let deviations = if run.steps.len() > 1 {
        0.0
    } else {
        GROWTH_DEVIATIONS_MIN
    };
    if !has_growing_load(&points, deviations) {
        return Vec::new();
    }
    let figures = |point: &LoadPoint| (point.offered_per_s, point.achieved_per_s, point.tail_ms);
    let knee = stats::find_overload_point(points.iter().map(figures));
    if let Some(point) = knee.and_then(|knee| points.get_mut(knee)) {
        point.knee = true;
    }
    points
}

/// Returns whether the offered load of the last third of the points is significantly larger than
/// the load of the first third. A significant difference is more than `deviations` standard
/// deviations of Poisson arrivals.
fn has_growing_load(points: &[LoadPoint], deviations: f64) -> bool {
    let third = points.len().div_ceil(3);
    let due = |points: &[LoadPoint]| points.iter().map(|point| point.due as f64).sum::<f64>();
    let rate = |points: &[LoadPoint]| points.iter().map(|point| point.offered_per_s).sum::<f64>();
    let (Some(first), Some(last)) = (
        points.get(..third),
        points.get(points.len().saturating_sub(third)..),
    ) else {
        return false;
    };
    let deviation = (1.0 / due(first).max(1.0) + 1.0 / due(last).max(1.0)).sqrt();
    points.len() > 1 && (rate(last) / rate(first).max(1e-9)).ln() > deviations * deviation
}

/// Divides a step into periods of whole seconds.
fn split_into_bins(step: &StepResult) -> Vec<StepResult> {
    let length = step.end_s - step.start_s;
    let width = (length / BINS as f64).ceil().max(1.0);
    (0..BINS)
        .map(|n| {
            (
                step.start_s + width * n as f64,
                step.start_s + width * (n + 1) as f64,
            )
        })
        .take_while(|(_, end_s)| *end_s <= step.end_s)
        .map(|(start_s, end_s)| StepResult {
            start_s,
            end_s,
            ..StepResult::default()
        })
        .collect()
}

/// A function that returns a latency quantile of the requests in one second, in milliseconds.
type SecondQuantileFunction = fn(&SecondStats) -> f64;

/// The latency quantile for which all points have enough samples.
#[derive(Debug, Clone, Copy)]
enum TailQuantile {
    /// The quantile (0 to 1) over all requests of a step.
    OfStep(f64),
    /// The quantile of each second of a period. The largest of these values is used.
    OfSecond(SecondQuantileFunction),
    /// There are too few requests for any quantile.
    Unsupported,
}

impl TailQuantile {
    fn choose_tail_quantile(run: &RunResult) -> TailQuantile {
        let supported =
            |count: Option<u64>, share| stats::has_enough_samples(count.unwrap_or(0), share);
        if run.steps.len() > 1 {
            let least = run
                .steps
                .iter()
                .map(|step| step.merged_stats().from_due.count())
                .min();
            let share = [0.999, 0.99, 0.9, 0.5]
                .into_iter()
                .find(|share| supported(least, *share));
            return share.map_or(TailQuantile::Unsupported, TailQuantile::OfStep);
        }
        let offered = run.seconds.iter().filter(|second| second.due > 0);
        let least = offered.map(|second| second.ended).min();
        let quantiles: [(f64, SecondQuantileFunction); 3] = [
            (0.99, |second| second.due_p99_ms),
            (0.9, |second| second.due_p90_ms),
            (0.5, |second| second.due_p50_ms),
        ];
        let found = quantiles
            .into_iter()
            .find(|(share, _)| supported(least, *share));
        found.map_or(TailQuantile::Unsupported, |(_, of)| {
            TailQuantile::OfSecond(of)
        })
    }
}

fn load_point(run: &RunResult, of: &StepResult, tail: TailQuantile) -> Option<LoadPoint> {
    let inside = |second: u64| (of.start_s..of.end_s - 1e-9).contains(&(second as f64));
    let seconds = || run.seconds.iter().filter(|second| inside(second.second));
    let length = seconds().count() as f64;
    let due: u64 = seconds().map(|second| second.due).sum();
    let well: u64 = seconds()
        .map(|second| second.ended - second.errors.min(second.ended))
        .sum();
    let tail_ms = match tail {
        TailQuantile::OfStep(share) => of.merged_stats().from_due.quantile_ms(share),
        TailQuantile::OfSecond(of) => seconds().map(of).fold(0.0, f64::max),
        // All points get the same tail latency, so that only the throughput determines the knee.
        TailQuantile::Unsupported => 1.0,
    };
    (due > 0 && length > 0.0).then(|| LoadPoint {
        offered_per_s: due as f64 / length,
        achieved_per_s: well as f64 / length,
        tail_ms,
        knee: false,
        due,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_run(seconds: impl Iterator<Item = (u64, u64, f64)>) -> RunResult {
        let second = |(n, (due, ended, p99)): (usize, (u64, u64, f64))| SecondStats {
            second: n as u64,
            due,
            ended,
            due_p50_ms: p99,
            due_p90_ms: p99,
            due_p99_ms: p99,
            ..SecondStats::default()
        };
        let seconds: Vec<SecondStats> = seconds.enumerate().map(second).collect();
        let end_s = seconds.len() as f64;
        RunResult {
            steps: vec![StepResult {
                end_s,
                ..StepResult::default()
            }],
            seconds,
            ..RunResult::default()
        }
    }

    #[test]
    fn the_knee_is_where_throughput_lags_or_the_tail_grows() {
        let flat = test_run((3..=20).map(|n| (n * 10, (n * 10).min(140), 1.0)));
        let knee = load_points(&flat)
            .into_iter()
            .find(|point| point.knee)
            .unwrap();
        assert_eq!((knee.offered_per_s, knee.achieved_per_s), (150.0, 140.0));
        let slow = test_run((3..=20).map(|n| (n * 10, n * 10, if n < 10 { 1.0 } else { 4.0 })));
        assert_eq!(
            load_points(&slow).iter().position(|point| point.knee),
            Some(7)
        );
        let fine = test_run((3..=20).map(|n| (n * 10, n * 10, 1.0)));
        assert!(load_points(&fine).iter().all(|point| !point.knee));
        assert_eq!(load_points(&RunResult::default()), []);
        // Some seconds have too few requests to compute any quantile, so the latencies of the whole
        // run are ignored.
        let few = test_run((1..=20).map(|n| (n, n, if n < 8 { 1.0 } else { 4.0 })));
        assert!(load_points(&few).iter().all(|point| !point.knee));
    }

    #[test]
    fn a_constant_rate_has_no_knee() {
        // In some seconds, the server is slow and completes only 60 of 100 due requests.
        let disturbed = |n: u64| {
            if n % 7 == 3 {
                (100, 60, 90.0)
            } else {
                (100, 100, 1.0)
            }
        };
        assert_eq!(load_points(&test_run((0..20).map(disturbed))), []);
        // With Poisson arrivals at 100 requests per second, the standard deviation is 10. These
        // variations are not a growing load.
        let random = |n: u64| (100 + (n * 7) % 21, 100, if n > 3 { 9.0 } else { 1.0 });
        assert_eq!(load_points(&test_run((0..20).map(random))), []);
    }
}
