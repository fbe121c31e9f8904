//! Describes a run in one sentence, and lists the facts that identify the run, such as its targets
//! and its date.

use super::number_format::format_ms;
use super::percentiles::KeyQuantiles;
use crate::players::drive::PopulationStats;
use crate::result::{RequestStats, RunResult, TARGETS_MAX};
use std::time::{Duration, UNIX_EPOCH};

/// The start of the year 10000, in Unix milliseconds. The date format cannot express later times.
const DATE_MS_END: u64 = 253_402_300_800_000;

/// Describes the result of a run in one sentence.
pub(super) fn describe_result(run: &RunResult) -> String {
    let total = run.merged_stats();
    let mut parts = vec![match run.viewing.as_deref() {
        Some(viewing) => describe_playback_result(viewing),
        None => describe_request_latency(run, &total),
    }];
    match total.error_count() {
        _ if total.requests == 0 => {}
        0 => parts.push("no request failed".to_owned()),
        errors => {
            let (requests, percent) = (
                total.requests,
                errors as f64 / total.requests as f64 * 100.0,
            );
            parts.push(format!(
                "{errors} of {requests} requests failed ({percent:.2} %)"
            ));
        }
    }
    if run.fell_behind() {
        let late = "the generator fell behind its schedule, so these times include its lateness";
        parts.push(late.to_owned());
    }
    parts.join("; ") + "."
}

fn describe_request_latency(run: &RunResult, total: &RequestStats) -> String {
    let (times, since) = match run.due_count() {
        0 => (&total.from_sent, "being sent"),
        _ => (&total.from_due, "their due time"),
    };
    // A single request has no rate.
    let rate = match run.wall_s > 0.0 && total.requests > 1 {
        true => format!(" at {:.1} per second", total.requests as f64 / run.wall_s),
        false => String::new(),
    };
    let figures = KeyQuantiles::from_histogram(times);
    let Some((share, ms)) = figures.highest_percentile() else {
        let slowest = figures.format_quantile("max");
        let (count, slowest_was) = match total.requests {
            1 => ("1 request".to_owned(), "it was"),
            count => (format!("{count} requests"), "the slowest was"),
        };
        return format!("{count}{rate}: {slowest_was} complete {slowest} ms after {since}");
    };
    let (count, half) = (total.requests, figures.format_quantile("p50"));
    let sentence =
        format!("{count} requests{rate}: half were complete within {half} ms of {since}");
    // If there are few requests, no percentile above the median has enough samples.
    match share > 0.5 {
        true => format!(
            "{sentence}, {} % within {} ms",
            share * 100.0,
            format_ms(ms)
        ),
        false => sentence,
    }
}

fn describe_playback_result(viewing: &PopulationStats) -> String {
    format!(
        "{} viewers played {:.1} minutes of video with {} stalls, which took {:.2} % of the time",
        viewing.viewers,
        viewing.played_s / 60.0,
        viewing.stalls,
        viewing.stall_ratio() * 100.0
    )
}

/// Adds the unit to a rate that is a plain number. Other rate profiles are returned unchanged.
fn describe_offered(offered: &str) -> String {
    match offered.parse::<f64>() {
        Ok(_) => format!("{offered} requests per second"),
        Err(_) => offered.to_owned(),
    }
}

/// Returns the names and the values of the facts that identify a run.
pub(super) fn list_run_facts(run: &RunResult) -> Vec<(&'static str, String)> {
    let unknown = |text: &str| match text {
        "" => "not recorded".to_owned(),
        text => text.to_owned(),
    };
    let mut targets = run.targets.join(", ");
    if run.targets.len() == TARGETS_MAX {
        targets += ", and possibly more";
    }
    let started = match run.started_unix_ms {
        0 | DATE_MS_END.. => String::new(),
        ms => httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(ms)),
    };
    let version = match run.program_version.as_str() {
        "" => String::new(),
        version => format!("headwater {version}"),
    };
    vec![
        ("URL", unknown(&targets)),
        ("Offered load", unknown(&describe_offered(&run.offered))),
        ("Started", unknown(&started)),
        ("Generator", unknown(&version)),
    ]
}
