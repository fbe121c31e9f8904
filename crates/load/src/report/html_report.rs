//! A self-contained HTML report with its data, plots (uPlot, MIT) and styles.

use super::throughput_knee::{self, LoadPoint};
use super::{key_quantiles, text_summary};
use crate::players::drive::{PlaceTrace, PopulationSample};
use crate::result::{LatencyHistogram, RunResult, SecondStats};
use serde::Serialize;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const VIEWERS: &str = include_str!("../players/page.js");
/// Draws static SVG images through the same interface as uPlot.
const STATIC_PLOTS: &str = include_str!("page/static_plots.js");

// `UPLOT`: script and style of uPlot, if vendor/fetch.sh has fetched it before the build.
include!(concat!(env!("OUT_DIR"), "/uplot.rs"));

/// Limit of points per curve; more would not be visible.
const POINTS_MAX: usize = 600;

/// Limit of seconds per plot; longer runs show the worst of several seconds.
const SECONDS_MAX: usize = 2000;

/// The data that the page's script plots.
#[derive(Serialize)]
struct RunPlots<'a> {
    name: &'a str,
    summary: String,
    /// Number of seconds per point; their worst values are shown.
    every_s: usize,
    seconds: Vec<SecondStats>,
    points: Vec<LoadPoint>,
    closed: bool,
    merged: bool,
    due: LatencyCurve,
    sent: LatencyCurve,
    steps: Vec<StepRow>,
    samples: &'a [PopulationSample],
    traces: &'a [PlaceTrace],
}

#[derive(Serialize)]
struct LatencyCurve {
    figures: BTreeMap<&'static str, f64>,
    /// Milliseconds, and the share of requests within them.
    values: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct StepRow {
    /// Start and end in seconds, as text.
    when: String,
    offered_per_s: f64,
    requests: u64,
    errors: u64,
    /// Quantiles of the latency from due; in a closed loop, from sent.
    figures: BTreeMap<&'static str, f64>,
}

/// Renders the page of one or several runs.
pub fn render_page(runs: &[&RunResult]) -> String {
    let drawn: Vec<RunPlots<'_>> = runs.iter().map(|run| plot_run(run)).collect();
    // A `<` in the data could end the script element.
    let data = serde_json::to_string(&drawn)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let title = match runs
        .iter()
        .map(|run| run.name.as_str())
        .find(|name| !name.is_empty())
    {
        Some(name) => escape_html(name),
        None => "Load".into(),
    };
    let (library, library_style) = UPLOT.unwrap_or((STATIC_PLOTS, ""));
    // The data is inserted last, so that placeholders in it are not replaced.
    PAGE.replace("{{title}}", &title)
        .replace("{{style}}", &format!("{library_style}\n{STYLE}"))
        .replace("{{plots}}", library)
        .replace("{{script}}", &format!("{VIEWERS}\n{SCRIPT}"))
        .replace("{{data}}", &data)
}

fn plot_run(run: &RunResult) -> RunPlots<'_> {
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
        StepRow {
            when: format!("{:.0}–{:.0}", step.start_s, step.end_s),
            offered_per_s: step.due as f64 / (step.end_s - step.start_s).max(1e-9),
            requests: cell.requests,
            errors: cell.error_count(),
            figures: key_quantiles(times),
        }
    });
    RunPlots {
        name: &run.name,
        summary: text_summary::format_summary(run),
        every_s,
        seconds: run.seconds.chunks(every_s).map(merge_seconds).collect(),
        // A closed loop has no offered load.
        points: if closed {
            Vec::new()
        } else {
            throughput_knee::load_points(run)
        },
        closed,
        merged: run.generators > 1,
        due: latency_curve(&total.from_due),
        sent: latency_curve(&total.from_sent),
        steps: steps.collect(),
        samples: viewing.map_or(&[], |viewing| &viewing.samples),
        traces: viewing.map_or(&[], |viewing| &viewing.traces),
    }
}

/// Merges seconds: means of rates, maxima of latencies.
fn merge_seconds(seconds: &[SecondStats]) -> SecondStats {
    let count = seconds.len().max(1) as u64;
    let mean = |of: fn(&SecondStats) -> u64| seconds.iter().map(of).sum::<u64>() / count;
    let most = |of: fn(&SecondStats) -> f64| seconds.iter().map(of).fold(0.0, f64::max);
    SecondStats {
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

/// Returns points of the distribution: all that were recorded, or a thinned selection with the
/// whole tail.
fn latency_curve(times: &LatencyHistogram) -> LatencyCurve {
    let total = times.count().max(1) as f64;
    let mut seen = 0;
    let all: Vec<(f64, f64)> = times
        .values_ms()
        .map(|(ms, count)| {
            seen += count;
            (ms, seen as f64 / total)
        })
        .collect();
    // Points of the tail are close in share but far apart in time, so they are thinned last.
    let keep_from = all.len().saturating_sub(POINTS_MAX / 2);
    let every = keep_from.div_ceil(POINTS_MAX / 2).max(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(n, _)| *n >= keep_from || n % every == 0);
    LatencyCurve {
        figures: key_quantiles(times),
        values: kept.map(|(_, value)| *value).collect(),
    }
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_no_other_file_and_escapes_names() {
        let name = "</script><script>alert(1)</script>{{script}}";
        let run = RunResult {
            name: name.into(),
            ..RunResult::default()
        };
        let page = render_page(&[&run]);
        assert!(!page.contains("alert(1)</script>"));
        for word in ["src=\"", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("</script>").count(), 3);
    }
}
