//! An HTML report in a single file, which contains the data, the styles and the script for the
//! plots (uPlot, MIT license).

use super::paired_comparison::{RunComparison, format_interval, interval_heading};
use super::percentiles::KeyQuantiles;
use super::run_description::{describe_result, list_run_facts};
use super::text_summary;
use super::throughput_knee::{self, LoadPoint};
use super::url_group_table::{UrlGroupRow, url_group_rows};
use crate::players::drive::{PopulationSample, ViewerTrace};
use crate::result::{LatencyHistogram, RunResult, SecondStats};
use serde::Serialize;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const VIEWERS: &str = include_str!("../players/page.js");
/// A script that has the same interface as uPlot and draws static SVG images. The script replaces
/// uPlot if uPlot is missing.
const STATIC_PLOTS: &str = include_str!("page/static_plots.js");

// Defines `UPLOT`, which contains the script and the style of uPlot. `UPLOT` is `None` if
// vendor/fetch.sh did not fetch uPlot before the build.
include!(concat!(env!("OUT_DIR"), "/uplot.rs"));

/// Maximum number of points of a latency curve. More points would not be visible.
const POINTS_MAX: usize = 600;

/// Maximum number of points in a plot whose horizontal axis is time. In a longer run, each point
/// merges several seconds.
const SECONDS_MAX: usize = 2000;

/// The data that the script of the page plots.
#[derive(Serialize)]
struct RunPlots<'a> {
    name: &'a str,
    summary: String,
    /// Number of seconds that [`merge_consecutive_seconds`] merges into each point.
    every_s: usize,
    seconds: Vec<SecondStats>,
    points: Vec<LoadPoint>,
    closed: bool,
    merged: bool,
    due: LatencyCurve,
    sent: LatencyCurve,
    steps: Vec<StepRow>,
    url_groups: Vec<UrlGroupRow<'a>>,
    samples: &'a [PopulationSample],
    traces: &'a [ViewerTrace],
}

#[derive(Serialize)]
struct LatencyCurve {
    figures: KeyQuantiles,
    /// The points of the curve: latencies in milliseconds, each with the share of requests that
    /// took at most this long.
    values: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct StepRow {
    /// Start and end of the step in seconds, as text.
    when: String,
    offered_per_s: f64,
    requests: u64,
    errors: u64,
    /// Quantiles of the latency from the due time. In a closed loop, quantiles of the latency from
    /// sending.
    figures: KeyQuantiles,
}

/// Renders the page of a run.
pub fn render_run_page(run: &RunResult) -> String {
    let title = match run.name.as_str() {
        "" => "Load test",
        name => name,
    };
    let facts = facts_list(&list_run_facts(run));
    let above = format!("{}{facts}", heading(title, &describe_result(run)));
    render_page(title, &above, "", &[run])
}

/// Renders the page of a comparison. The page starts with a sentence about the first ratio, and
/// then describes both configurations.
pub fn render_comparison_page(compared: &RunComparison) -> String {
    let [a, b] = compared.names();
    let title = format!("{b} compared with {a}");
    let runs = compared.merged_runs();
    let sides = runs.iter().map(|run| {
        let count = format!("{} runs", run.generators);
        let facts = facts_list(&list_run_facts(run));
        format!(
            "<section class=\"side\"><h2>{}</h2><p>{count}</p>{facts}</section>",
            escape_html(&run.name)
        )
    });
    let sides: String = sides.collect();
    let above = format!(
        "{}<div class=\"sides\">{sides}</div>",
        heading(&title, &compared.describe_result())
    );
    let [run_a, run_b] = &runs;
    render_page(&title, &above, &ratio_table(compared), &[run_a, run_b])
}

fn heading(title: &str, sentence: &str) -> String {
    let (title, sentence) = (escape_html(title), escape_html(sentence));
    format!("<h1>{title}</h1><p class=\"lead\">{sentence}</p>")
}

fn facts_list(facts: &[(&str, String)]) -> String {
    let fact =
        |(name, value): &(&str, String)| format!("<dt>{name}</dt><dd>{}</dd>", escape_html(value));
    let all: String = facts.iter().map(fact).collect();
    format!("<dl>{all}</dl>")
}

/// Returns an HTML table of the ratios of all quantities. The table is collapsible.
fn ratio_table(compared: &RunComparison) -> String {
    let [a, b] = compared.names().map(escape_html);
    let row = |(name, ratio): &(&str, stats::PairedRatio)| {
        let pairs: Vec<String> = ratio
            .rounds
            .iter()
            .map(|pair| format!("{pair:.3}"))
            .collect();
        format!(
            "<tr><th scope=\"row\">{name}</th><td>{:.3}</td><td>{}</td><td>{}</td></tr>",
            ratio.median,
            format_interval(ratio),
            pairs.join(" ")
        )
    };
    let ratios = compared.ratios();
    let rows: String = ratios.iter().map(row).collect();
    let pairs = ratios.first().map_or(0, |(_, ratio)| ratio.rounds.len());
    let interval = interval_heading(pairs);
    format!(
        "<details open><summary>Ratios {b} / {a}</summary><div class=\"wide\"><table><tr><th></th>\
         <th>Median ratio</th><th>{interval}</th><th>Each pair</th></tr>{rows}</table></div></details>"
    )
}

/// Fills in the template of the page. `above` and `ratios` are HTML.
fn render_page(title: &str, above: &str, ratios: &str, runs: &[&RunResult]) -> String {
    let drawn: Vec<RunPlots<'_>> = runs.iter().map(|run| collect_plot_data(run)).collect();
    // A `<` in the data could end the script element, so every `<` is escaped.
    let data = serde_json::to_string(&drawn)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let (library, library_style) = UPLOT.unwrap_or((STATIC_PLOTS, ""));
    let parts = [
        ("title", escape_html(title)),
        ("style", format!("{library_style}\n{STYLE}")),
        ("plots", library.to_owned()),
        ("script", format!("{VIEWERS}\n{SCRIPT}")),
        ("above", above.to_owned()),
        ("ratios", ratios.to_owned()),
        ("data", data),
    ];
    // Searches only the template for placeholders, and never the inserted text. A placeholder in
    // inserted text is therefore not replaced.
    let mut out = String::new();
    let mut rest = PAGE;
    while let Some((before, from)) = rest.split_once("{{") {
        let (name, after) = from.split_once("}}").unwrap_or(("", from));
        out += before;
        let part = parts.iter().find(|(known, _)| *known == name);
        out += part.map_or("", |(_, text)| text.as_str());
        rest = after;
    }
    out + rest
}

fn collect_plot_data(run: &RunResult) -> RunPlots<'_> {
    let viewing = run.viewing.as_deref();
    let total = run.merged_stats();
    let every_s = run.seconds.len().div_ceil(SECONDS_MAX).max(1);
    let closed = run.due_count() == 0;
    let steps = run.steps.iter().map(|step| {
        let cell = step.merged_stats();
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
            figures: KeyQuantiles::from_histogram(times),
        }
    });
    RunPlots {
        name: &run.name,
        summary: text_summary::format_summary(run),
        every_s,
        seconds: run
            .seconds
            .chunks(every_s)
            .map(merge_consecutive_seconds)
            .collect(),
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
        url_groups: url_group_rows(run),
        samples: viewing.map_or(&[], |viewing| &viewing.samples),
        traces: viewing.map_or(&[], |viewing| &viewing.traces),
    }
}

/// Merges the statistics of several seconds. Takes the mean of the counts, and the maximum of the
/// latencies and of the open connections.
fn merge_consecutive_seconds(seconds: &[SecondStats]) -> SecondStats {
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

/// Returns the points of the latency curve. If there are too many points, keeps all points of the
/// tail and only some of the other points.
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
    // Points in the tail have similar shares but very different times, so all points of the tail
    // are kept.
    let keep_from = all.len().saturating_sub(POINTS_MAX / 2);
    let every = keep_from.div_ceil(POINTS_MAX / 2).max(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(n, _)| *n >= keep_from || n % every == 0);
    LatencyCurve {
        figures: KeyQuantiles::from_histogram(times),
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
        let page = render_run_page(&run);
        assert!(!page.contains("alert(1)</script>"));
        for word in ["src=\"", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("</script>").count(), 3);
    }

    #[test]
    fn a_page_names_url_date_and_version() {
        let run = RunResult {
            targets: vec!["http://host/film.mp4/.m3u8?a=1&b=2".into()],
            started_unix_ms: 1_700_000_000_000,
            program_version: "1.2.3".into(),
            ..RunResult::default()
        };
        for page in [
            render_run_page(&run),
            render_comparison_page(&RunComparison::new(
                vec![run.clone()],
                vec![run.clone()],
                ("<nginx>".into(), "ours".into()),
            )),
        ] {
            for word in [
                "http://host/film.mp4/.m3u8?a=1&amp;b=2",
                "Tue, 14 Nov 2023 22:13:20 GMT",
                "headwater 1.2.3",
            ] {
                assert!(page.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn the_page_of_a_comparison_names_both_sides_and_starts_with_the_ratio() {
        let run = RunResult {
            wall_s: 2.0,
            steps: vec![crate::result::StepResult {
                kinds: [(
                    crate::rate::RequestKind::Other,
                    crate::result::RequestStats {
                        bytes: 100,
                        ..crate::result::RequestStats::default()
                    },
                )]
                .into(),
                ..crate::result::StepResult::default()
            }],
            ..RunResult::default()
        };
        let names = ("nginx".into(), "headwater".into());
        let page = render_comparison_page(&RunComparison::new(
            vec![run.clone(); 6],
            vec![run; 6],
            names,
        ));
        let lead = page.split("class=\"lead\">").nth(1).unwrap();
        assert!(
            lead.starts_with(
                "headwater has 1.000 times the body bytes per second of nginx (95 % interval 1.000"
            ),
            "{}",
            &lead[..200]
        );
        assert!(page.contains("<h1>headwater compared with nginx</h1>"));
        assert!(page.contains("<h2>nginx</h2>") && page.contains("<h2>headwater</h2>"));
        assert!(page.find("class=\"lead\"") < page.find("<h2>nginx</h2>"));
    }
}
