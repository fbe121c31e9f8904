//! A report as one file that needs no other: data, plots (uPlot, MIT) and style are inside.

use super::knee::{self, Point};
use super::{figures, text};
use crate::players::drive::{Sample, Trace};
use crate::result::{Run, Second, Times};
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const VIEWERS: &str = include_str!("../players/page.js");
const PLOTS: &str = include_str!("../../../../vendor/uPlot/uPlot.iife.min.js");
const PLOTS_STYLE: &str = include_str!("../../../../vendor/uPlot/uPlot.min.css");

/// Most points of a curve; more cannot be seen.
const POINTS_MAX: usize = 600;

/// Most seconds that are drawn; longer runs are drawn by their worst of several.
const SECONDS_MAX: usize = 2000;

/// What the page's script draws.
#[derive(Serialize)]
struct Drawn<'a> {
    name: &'a str,
    summary: String,
    /// The worst of so many seconds stands for them.
    every_s: usize,
    seconds: Vec<Second>,
    points: Vec<Point>,
    closed: bool,
    merged: bool,
    due: Curve,
    sent: Curve,
    steps: Vec<Step>,
    samples: &'a [Sample],
    traces: &'a [Trace],
}

#[derive(Serialize)]
struct Curve {
    figures: BTreeMap<&'static str, f64>,
    /// Milliseconds, and the share of requests within them.
    values: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct Step {
    /// Seconds of the run, as words.
    when: String,
    offered_per_s: f64,
    requests: u64,
    errors: u64,
    /// From due, or from sent in a closed loop.
    figures: BTreeMap<&'static str, f64>,
}

/// The page of one run, or of several beside each other.
pub fn page(runs: &[&Run]) -> String {
    let drawn: Vec<Drawn<'_>> = runs.iter().map(|run| draw(run)).collect();
    // Text that would end the script element is written otherwise.
    let data = serde_json::to_string(&drawn)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let title = match runs
        .iter()
        .map(|run| run.name.as_str())
        .find(|name| !name.is_empty())
    {
        Some(name) => escape(name),
        None => "Load".into(),
    };
    // The data last: what it says is not looked at for further places.
    PAGE.replace("{{title}}", &title)
        .replace("{{style}}", &format!("{PLOTS_STYLE}\n{STYLE}"))
        .replace("{{plots}}", PLOTS)
        .replace("{{script}}", &format!("{VIEWERS}\n{SCRIPT}"))
        .replace("{{data}}", &data)
}

fn draw(run: &Run) -> Drawn<'_> {
    let viewing = run.viewing.as_deref();
    let total = run.total();
    let every_s = run.seconds.len().div_ceil(SECONDS_MAX).max(1);
    let closed = run.due() == 0;
    let steps = run.steps.iter().map(|step| {
        let cell = step.total();
        let times = if closed {
            &cell.from_sent
        } else {
            &cell.from_due
        };
        Step {
            when: format!("{:.0}–{:.0}", step.start_s, step.end_s),
            offered_per_s: step.due as f64 / (step.end_s - step.start_s).max(1e-9),
            requests: cell.requests,
            errors: cell.errors(),
            figures: figures(times),
        }
    });
    Drawn {
        name: &run.name,
        summary: text::summary(run),
        every_s,
        seconds: run.seconds.chunks(every_s).map(worst).collect(),
        // Nothing is offered in a closed loop.
        points: if closed {
            Vec::new()
        } else {
            knee::points(run)
        },
        closed,
        merged: run.generators > 1,
        due: curve(&total.from_due),
        sent: curve(&total.from_sent),
        steps: steps.collect(),
        samples: viewing.map_or(&[], |viewing| &viewing.samples),
        traces: viewing.map_or(&[], |viewing| &viewing.traces),
    }
}

/// Rates are means over the stretch; latencies its worst.
fn worst(seconds: &[Second]) -> Second {
    let count = seconds.len().max(1) as u64;
    let mean = |of: fn(&Second) -> u64| seconds.iter().map(of).sum::<u64>() / count;
    let most = |of: fn(&Second) -> f64| seconds.iter().map(of).fold(0.0, f64::max);
    Second {
        second: seconds.first().map_or(0, |second| second.second),
        due: mean(|s| s.due),
        ended: mean(|s| s.ended),
        errors: mean(|s| s.errors),
        bytes: mean(|s| s.bytes),
        open: seconds.iter().map(|second| second.open).max().unwrap_or(0),
        due_p50_ms: most(|s| s.due_p50_ms),
        due_p90_ms: most(|s| s.due_p90_ms),
        due_p99_ms: most(|s| s.due_p99_ms),
        due_max_ms: most(|s| s.due_max_ms),
        sent_p50_ms: most(|s| s.sent_p50_ms),
        sent_p99_ms: most(|s| s.sent_p99_ms),
    }
}

/// The distribution as points: every one that was recorded, or evenly chosen ones with all of the
/// tail.
fn curve(times: &Times) -> Curve {
    let total = times.count().max(1) as f64;
    let mut seen = 0;
    let all: Vec<(f64, f64)> = times
        .values_ms()
        .map(|(ms, count)| {
            seen += count;
            (ms, seen as f64 / total)
        })
        .collect();
    // The tail's points lie close in share and far apart in time: it is thinned last.
    let keep_from = all.len().saturating_sub(POINTS_MAX / 2);
    let every = keep_from.div_ceil(POINTS_MAX / 2).max(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(n, _)| *n >= keep_from || n % every == 0);
    Curve {
        figures: figures(times),
        values: kept.map(|(_, value)| *value).collect(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_no_other_file_and_lets_no_name_out() {
        let name = "</script><script>alert(1)</script>{{script}}";
        let run = Run {
            name: name.into(),
            ..Run::default()
        };
        let page = page(&[&run]);
        assert!(!page.contains("alert(1)</script>"));
        for word in ["src=\"", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("</script>").count(), 3);
    }
}
