//! Where a server stopped keeping up: throughput against offered load.

use crate::result::{Run, Stretch};
use serde::Serialize;

/// Stretches that a profile without steps is cut into.
const BINS: usize = 20;

/// What was offered, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Requests due a second.
    pub offered_per_s: f64,
    /// Requests that ended well a second, within the stretch.
    pub achieved_per_s: f64,
    /// The tail of the latency from due: p99.9 of a step, the worst second's p99 of a bin.
    pub tail_ms: f64,
    /// The first that is over the knee.
    pub knee: bool,
}

/// The points of a run, in order of time; none of a closed loop, or where it told no seconds.
pub fn points(run: &Run) -> Vec<Point> {
    let mut points: Vec<Point> = match run.steps.len() {
        0 => Vec::new(),
        1 => bins(&run.steps[0])
            .iter()
            .filter_map(|bin| point(run, bin, None))
            .collect(),
        _ => {
            let tail = |step: &Stretch| step.total().from_due.quantile_ms(0.999);
            run.steps
                .iter()
                .filter_map(|step| point(run, step, Some(tail(step))))
                .collect()
        }
    };
    let figures = |point: &Point| (point.offered_per_s, point.achieved_per_s, point.tail_ms);
    let knee = stats::knee(points.iter().map(figures));
    if let Some(point) = knee.and_then(|knee| points.get_mut(knee)) {
        point.knee = true;
    }
    points
}

/// Pieces of whole seconds.
fn bins(step: &Stretch) -> Vec<Stretch> {
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
        .map(|(start_s, end_s)| Stretch {
            start_s,
            end_s,
            ..Stretch::default()
        })
        .collect()
}

fn point(run: &Run, of: &Stretch, tail_ms: Option<f64>) -> Option<Point> {
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
    (due > 0 && length > 0.0).then(|| Point {
        offered_per_s: due as f64 / length,
        achieved_per_s: well as f64 / length,
        tail_ms: tail_ms.unwrap_or(worst),
        knee: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Second;

    fn run(seconds: impl Iterator<Item = (u64, u64, f64)>) -> Run {
        let second = |(n, (due, ended, p99)): (usize, (u64, u64, f64))| Second {
            second: n as u64,
            due,
            ended,
            due_p99_ms: p99,
            ..Second::default()
        };
        let seconds: Vec<Second> = seconds.enumerate().map(second).collect();
        let end_s = seconds.len() as f64;
        Run {
            steps: vec![Stretch {
                end_s,
                ..Stretch::default()
            }],
            seconds,
            ..Run::default()
        }
    }

    #[test]
    fn the_knee_is_where_throughput_stays_behind_or_the_tail_grows() {
        let flat = run((1..=20).map(|n| (n * 10, (n * 10).min(140), 1.0)));
        let knee = points(&flat).into_iter().find(|point| point.knee).unwrap();
        assert_eq!((knee.offered_per_s, knee.achieved_per_s), (150.0, 140.0));
        let slow = run((1..=20).map(|n| (n * 10, n * 10, if n < 8 { 1.0 } else { 4.0 })));
        assert_eq!(points(&slow).iter().position(|point| point.knee), Some(7));
        let fine = run((1..=20).map(|n| (n * 10, n * 10, 1.0)));
        assert!(points(&fine).iter().all(|point| !point.knee));
        assert_eq!(points(&Run::default()), []);
    }
}
