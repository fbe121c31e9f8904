//! The knee: the offered load at which a server stops keeping up.

use crate::result::{RunResult, StepResult};
use serde::Serialize;

/// Periods into which a profile without steps is divided.
const BINS: usize = 20;

/// Offered load and achieved throughput of a period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Requests due per second.
    pub offered_per_s: f64,
    /// Successful requests per second.
    pub achieved_per_s: f64,
    /// Tail of the latency from due: p99.9 of a step, or the worst second's p99.
    pub tail_ms: f64,
    /// The first point beyond the knee.
    pub knee: bool,
}

/// Returns the points of a run in order of time; none for a closed loop or without seconds.
pub fn load_points(run: &RunResult) -> Vec<LoadPoint> {
    let mut points: Vec<LoadPoint> = match run.steps.len() {
        0 => Vec::new(),
        1 => split_into_bins(&run.steps[0])
            .iter()
            .filter_map(|bin| load_point(run, bin, None))
            .collect(),
        _ => {
            let tail = |step: &StepResult| step.total().from_due.quantile_ms(0.999);
            run.steps
                .iter()
                .filter_map(|step| load_point(run, step, Some(tail(step))))
                .collect()
        }
    };
    let figures = |point: &LoadPoint| (point.offered_per_s, point.achieved_per_s, point.tail_ms);
    let knee = stats::find_knee(points.iter().map(figures));
    if let Some(point) = knee.and_then(|knee| points.get_mut(knee)) {
        point.knee = true;
    }
    points
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

fn load_point(run: &RunResult, of: &StepResult, tail_ms: Option<f64>) -> Option<LoadPoint> {
    let inside = |second: u64| (of.start_s..of.end_s - 1e-9).contains(&(second as f64));
    let seconds = || run.seconds.iter().filter(|second| inside(second.second));
    let length = seconds().count() as f64;
    let due: u64 = seconds().map(|second| second.due).sum();
    let well: u64 = seconds()
        .map(|second| second.ended - second.errors.min(second.ended))
        .sum();
    let worst = seconds()
        .map(|second| second.due_p99_ms)
        .fold(0.0, f64::max);
    (due > 0 && length > 0.0).then(|| LoadPoint {
        offered_per_s: due as f64 / length,
        achieved_per_s: well as f64 / length,
        tail_ms: tail_ms.unwrap_or(worst),
        knee: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::SecondStats;

    fn test_run(seconds: impl Iterator<Item = (u64, u64, f64)>) -> RunResult {
        let second = |(n, (due, ended, p99)): (usize, (u64, u64, f64))| SecondStats {
            second: n as u64,
            due,
            ended,
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
        let flat = test_run((1..=20).map(|n| (n * 10, (n * 10).min(140), 1.0)));
        let knee = load_points(&flat)
            .into_iter()
            .find(|point| point.knee)
            .unwrap();
        assert_eq!((knee.offered_per_s, knee.achieved_per_s), (150.0, 140.0));
        let slow = test_run((1..=20).map(|n| (n * 10, n * 10, if n < 8 { 1.0 } else { 4.0 })));
        assert_eq!(
            load_points(&slow).iter().position(|point| point.knee),
            Some(7)
        );
        let fine = test_run((1..=20).map(|n| (n * 10, n * 10, 1.0)));
        assert!(load_points(&fine).iter().all(|point| !point.knee));
        assert_eq!(load_points(&RunResult::default()), []);
    }
}
