//! The text summary of a run.

use super::number_format::{format_bytes, format_ms};
use super::percentiles::{KeyQuantiles, QUANTILES, quantile_if_supported};
use super::run_description::{describe_result, list_run_facts};
use super::url_group_table::write_url_groups;
use crate::result::{LAG_P99_MAX_MS, LatencyHistogram, RequestStats, RunResult};
use std::fmt::Write;

/// Formats the summary of a run.
pub fn format_summary(run: &RunResult) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_summary(&mut text, run);
    text
}

fn write_summary(out: &mut String, run: &RunResult) -> std::fmt::Result {
    let total = run.merged_stats();
    let name = if run.name.is_empty() {
        "run"
    } else {
        &run.name
    };
    let stopped = if run.stopped { ", stopped early" } else { "" };
    writeln!(out, "{name}: {}{stopped}", describe_result(run))?;
    for (fact, value) in list_run_facts(run) {
        writeln!(out, "{fact:<14}{value}")?;
    }
    if run.generators > 1 {
        writeln!(
            out,
            "merged from {} runs: distributions cover all requests; each second shows the worse quantile",
            run.generators
        )?;
    }
    let due = match run.due_count() {
        0 => String::new(),
        due => format!("{due} due, "),
    };
    writeln!(
        out,
        "requests      {due}{} ended, {} late, {} never sent, {} abandoned in {:.1} s",
        total.requests, total.late, run.unsent, run.abandoned, run.wall_s
    )?;
    write_resources(out, run, &total)?;
    write_latency_table(out, run, &total)?;
    write_url_groups(out, run)?;
    write_outcomes(out, run, &total)?;
    if let Some(viewing) = &run.viewing {
        out.push_str(&crate::players::population_report::format_summary(viewing));
    }
    write_lateness(out, run)
}

/// Writes the resources that the run used. Skips unknown resources, because HDR logs and raw
/// records do not contain all of them.
fn write_resources(out: &mut String, run: &RunResult, total: &RequestStats) -> std::fmt::Result {
    if total.bytes > 0 && run.wall_s > 0.0 {
        let megabits = total.bytes as f64 * 8.0 / run.wall_s / 1e6;
        let bytes = format_bytes(total.bytes);
        writeln!(out, "bodies        {bytes}, {megabits:.1} Mb/s")?;
    }
    if run.connections > 0 {
        write!(out, "connections   {} opened", run.connections)?;
        write_percentiles(out, &run.connect)?;
        writeln!(out)?;
    }
    if run.cpu_s > 0.0 {
        let per_second = total.requests as f64 / run.cpu_s;
        let cpu_s = run.cpu_s;
        writeln!(
            out,
            "generator     {cpu_s:.2} s of processor time, {per_second:.0} requests per second of it"
        )?;
    }
    Ok(())
}

/// Writes the median, the 99th percentile and the maximum, with the number of samples.
fn write_percentiles(out: &mut String, times: &LatencyHistogram) -> std::fmt::Result {
    if times.count() == 0 {
        return Ok(());
    }
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        if let Some(ms) = quantile_if_supported(times, share) {
            write!(out, " {name} {}", format_ms(ms))?;
        }
    }
    write!(
        out,
        " max {} ms of {}",
        format_ms(times.max_ms()),
        times.count()
    )
}

fn write_latency_table(
    out: &mut String,
    run: &RunResult,
    total: &RequestStats,
) -> std::fmt::Result {
    write!(out, "\n{:<24}{:>10}", "latency, ms", "samples")?;
    QUANTILES
        .iter()
        .try_for_each(|(name, _)| write!(out, "{name:>10}"))?;
    writeln!(out)?;
    let mut rows: Vec<(String, &LatencyHistogram)> = vec![
        ("from due".into(), &total.from_due),
        ("from sent".into(), &total.from_sent),
        ("first byte, from sent".into(), &total.first_byte),
    ];
    if run.due_count() == 0 {
        // In a closed loop, requests have no due time.
        rows.remove(0);
    }
    let closed = run.due_count() == 0;
    let since = if closed { "from sent" } else { "from due" };
    let times = |cell: &RequestStats| {
        if closed {
            cell.from_sent.clone()
        } else {
            cell.from_due.clone()
        }
    };
    let kinds = run.stats_by_kind();
    let steps = run.steps.iter().enumerate();
    let steps = steps.map(|(number, step)| (number, step, step.merged_stats()));
    let parts = kinds
        .iter()
        .filter(|_| kinds.len() > 1)
        .map(|(kind, cell)| (format!("  {}, {since}", kind.name()), times(cell)));
    let parts = parts.chain(
        steps
            .filter(|_| run.steps.len() > 1)
            .map(|(number, step, cell)| {
                let length_s = (step.end_s - step.start_s).max(1e-9);
                let name = match closed {
                    true => format!("  {:.0}-{:.0} s, {since}", step.start_s, step.end_s),
                    false if step.end_s <= step.start_s => {
                        format!("  step {}, {since}", number + 1)
                    }
                    false => format!("  {:.0}/s, {since}", step.due as f64 / length_s),
                };
                (name, times(&cell))
            }),
    );
    let parts: Vec<(String, LatencyHistogram)> = parts.collect();
    rows.extend(parts.iter().map(|(name, times)| (name.clone(), times)));
    for (name, times) in rows {
        // HDR logs and raw records do not contain all distributions. Missing distributions are
        // empty.
        if times.count() == 0 {
            continue;
        }
        let figures = KeyQuantiles::from_histogram(times);
        write!(out, "{name:<24}{:>10}", figures.sample_count())?;
        for (quantile, _) in QUANTILES {
            write!(out, "{:>10}", figures.format_quantile(quantile))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "A percentile needs ten samples beyond it.")
}

fn write_outcomes(out: &mut String, run: &RunResult, total: &RequestStats) -> std::fmt::Result {
    writeln!(out)?;
    for (status, count) in &total.statuses {
        writeln!(out, "{count:>10}  status {status}")?;
    }
    for (fault, count) in &total.faults {
        let example = run.examples.get(fault).map_or("", String::as_str);
        let example = example.strip_prefix(fault.description()).unwrap_or(example);
        writeln!(out, "{count:>10}  {fault}{example}")?;
    }
    Ok(())
}

fn write_lateness(out: &mut String, run: &RunResult) -> std::fmt::Result {
    if run.lag.count() == 0 || run.due_count() == 0 {
        return Ok(());
    }
    write!(out, "\ngenerator lateness:")?;
    write_percentiles(out, &run.lag)?;
    writeln!(out)?;
    if run.fell_behind() {
        writeln!(
            out,
            "THE GENERATOR FELL BEHIND its schedule (p99 over {LAG_P99_MAX_MS} ms): latencies from due \
             include its lateness. Lower the rate or use more cores."
        )?;
    }
    Ok(())
}
