//! The result of a run. The results of several runs can be merged.

use super::{LatencyHistogram, RequestStats, UrlGroupStats, url_group_or_other};
use crate::client::FailureKind;
use crate::players::drive::PopulationStats;
use crate::rate::RequestKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Limit on the 99th percentile of the generator's lateness, in milliseconds. If the percentile
/// exceeds this limit, the generator fell behind its schedule.
pub const LAG_P99_MAX_MS: f64 = 2.0;

/// The result of one step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Start of the step, in seconds since the start of the run.
    pub start_s: f64,
    /// End of the step, in seconds since the start of the run.
    pub end_s: f64,
    /// Number of requests that became due; 0 in a closed loop.
    pub due: u64,
    /// Statistics by kind of request.
    pub kinds: BTreeMap<RequestKind, RequestStats>,
}

impl StepResult {
    /// Returns the merged statistics of all kinds of request.
    pub fn merged_stats(&self) -> RequestStats {
        let mut total = RequestStats::default();
        self.kinds.values().for_each(|cell| total.merge(cell));
        total
    }
}

/// Statistics of one second of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondStats {
    /// Number of the second, counted from 0 at the start of the run.
    pub second: u64,
    /// Requests that became due.
    pub due: u64,
    /// Requests that completed or failed.
    pub ended: u64,
    /// Failures and responses with a status of 400 or more.
    pub errors: u64,
    /// Received bytes of bodies.
    pub bytes: u64,
    /// Open connections at the end of the second.
    pub open: u64,
    /// Median latency from the due time, in milliseconds.
    pub due_p50_ms: f64,
    /// 90th percentile of the latency from the due time, in milliseconds.
    pub due_p90_ms: f64,
    /// 99th percentile of the latency from the due time, in milliseconds.
    pub due_p99_ms: f64,
    /// Maximum latency from the due time, in milliseconds.
    pub due_max_ms: f64,
    /// Median latency from sending, in milliseconds.
    pub sent_p50_ms: f64,
    /// 99th percentile of the latency from sending, in milliseconds.
    pub sent_p99_ms: f64,
}

impl SecondStats {
    /// Computes the statistics of a second, except `due` and `open`, which the caller adds.
    pub(crate) fn from_stats<'a>(
        second: u64,
        cells: impl Iterator<Item = &'a RequestStats>,
    ) -> SecondStats {
        let mut total = RequestStats::default();
        cells.for_each(|cell| total.merge(cell));
        SecondStats {
            second,
            ended: total.requests,
            errors: total.error_count(),
            bytes: total.bytes,
            due_p50_ms: total.from_due.quantile_ms(0.5),
            due_p90_ms: total.from_due.quantile_ms(0.9),
            due_p99_ms: total.from_due.quantile_ms(0.99),
            due_max_ms: total.from_due.max_ms(),
            sent_p50_ms: total.from_sent.quantile_ms(0.5),
            sent_p99_ms: total.from_sent.quantile_ms(0.99),
            ..SecondStats::default()
        }
    }
}

/// The result of a run, or of several merged runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Version of the file format. The name of this field identifies the file type.
    pub headwater_load: u32,
    /// Name of the run in reports.
    pub name: String,
    /// The offered rate, as the user typed it.
    pub offered: String,
    /// The targets, at most [`TARGETS_MAX`], as the user typed them but without passwords.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Version of the program that generated the load; empty if unknown.
    #[serde(default)]
    pub program_version: String,
    /// Start of the run, as Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// Duration of the run until the last request ended or was abandoned, in seconds. This includes
    /// the drain. In a merged result, this is the time in which at least one of the runs was in
    /// progress.
    pub wall_s: f64,
    /// CPU time of the generator, in seconds.
    pub cpu_s: f64,
    /// Number of merged results; 1 for a single run.
    pub generators: u64,
    /// Steps of the profile.
    pub steps: Vec<StepResult>,
    /// Statistics of each second.
    pub seconds: Vec<SecondStats>,
    /// Requests that were due but never sent.
    pub unsent: u64,
    /// Requests that players cancelled, or that were still in flight when the run ended.
    pub abandoned: u64,
    /// Whether the user stopped the run early.
    pub stopped: bool,
    /// Delay between the due time and the start of each request for which a connection was free.
    pub lag: LatencyHistogram,
    /// Connections opened.
    pub connections: u64,
    /// Time to open a connection, including TLS.
    pub connect: LatencyHistogram,
    /// One example message for each kind of failure.
    pub examples: BTreeMap<FailureKind, String>,
    /// Statistics by URL group, at most [`super::URL_GROUPS_MAX`] groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub url_groups: BTreeMap<String, UrlGroupStats>,
    /// Statistics of viewers, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewing: Option<Box<PopulationStats>>,
}

/// Version of the file format.
pub const VERSION: u32 = 1;

/// Maximum number of targets in a result.
pub const TARGETS_MAX: usize = 8;

impl RunResult {
    /// Creates the result of a run that starts now.
    pub(crate) fn result_starting_now(offered: &str, steps: Vec<StepResult>) -> RunResult {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        RunResult {
            headwater_load: VERSION,
            offered: offered.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: since.unwrap_or_default().as_millis() as u64,
            generators: 1,
            steps,
            ..RunResult::default()
        }
    }

    /// Adds `cell` to the statistics of a step and a kind of request.
    pub(crate) fn add_stats(&mut self, step: u32, kind: RequestKind, cell: &RequestStats) {
        if let Some(stretch) = self.steps.get_mut(step as usize) {
            stretch.kinds.entry(kind).or_default().merge(cell);
        }
    }

    /// Returns the merged statistics of all steps and kinds of request.
    pub fn merged_stats(&self) -> RequestStats {
        let mut total = RequestStats::default();
        self.steps
            .iter()
            .for_each(|step| total.merge(&step.merged_stats()));
        total
    }

    /// Returns the statistics by kind of request, merged over all steps.
    pub fn stats_by_kind(&self) -> BTreeMap<RequestKind, RequestStats> {
        let mut kinds: BTreeMap<RequestKind, RequestStats> = BTreeMap::new();
        for (kind, cell) in self.steps.iter().flat_map(|step| &step.kinds) {
            kinds.entry(*kind).or_default().merge(cell);
        }
        kinds
    }

    /// Returns the number of requests that became due.
    pub fn due_count(&self) -> u64 {
        self.steps.iter().map(|step| step.due).sum()
    }

    /// Returns whether the generator fell behind its schedule.
    pub fn fell_behind(&self) -> bool {
        self.lag.count() > 0 && self.lag.quantile_ms(0.99) > LAG_P99_MAX_MS
    }

    /// Adds targets without their passwords, up to a total of [`TARGETS_MAX`]. Ignores duplicates.
    pub fn add_targets<'a>(&mut self, targets: impl IntoIterator<Item = &'a str>) {
        for target in targets {
            if self.targets.len() >= TARGETS_MAX {
                return;
            }
            let target = without_password(target);
            if !self.targets.contains(&target) {
                self.targets.push(target);
            }
        }
    }

    /// Merges the results of several generators, or of repetitions of one plan.
    pub fn merge_runs(runs: Vec<RunResult>) -> RunResult {
        let wall_s = covered_seconds(&runs);
        let mut runs = runs.into_iter();
        let mut merged = runs.next().unwrap_or_default();
        runs.for_each(|run| merged.merge(&run));
        merged.wall_s = wall_s;
        merged
    }

    /// Adds the result of another generator, or of another repetition of the same plan. Does not
    /// change the duration.
    fn merge(&mut self, other: &RunResult) {
        self.add_targets(other.targets.iter().map(String::as_str));
        let known = |start: u64| if start == 0 { u64::MAX } else { start };
        let first = known(self.started_unix_ms).min(known(other.started_unix_ms));
        self.started_unix_ms = if first == u64::MAX { 0 } else { first };
        for (n, step) in other.steps.iter().enumerate() {
            if n >= self.steps.len() {
                self.steps.push(StepResult {
                    start_s: step.start_s,
                    end_s: step.end_s,
                    ..StepResult::default()
                });
            }
            let mine = &mut self.steps[n];
            mine.due += step.due;
            for (kind, cell) in &step.kinds {
                mine.kinds.entry(*kind).or_default().merge(cell);
            }
        }
        self.add_seconds(&other.seconds);
        self.cpu_s += other.cpu_s;
        self.generators += other.generators;
        self.unsent += other.unsent;
        self.abandoned += other.abandoned;
        self.stopped |= other.stopped;
        self.lag.merge(&other.lag);
        self.connections += other.connections;
        self.connect.merge(&other.connect);
        for (name, group) in &other.url_groups {
            url_group_or_other(&mut self.url_groups, name).merge(group);
        }
        match (&mut self.viewing, &other.viewing) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
        for (fault, text) in &other.examples {
            self.examples.entry(*fault).or_insert_with(|| text.clone());
        }
    }

    /// Adds the counts of each second. Quantiles cannot be added, so the higher quantile is kept,
    /// and the report mentions this.
    fn add_seconds(&mut self, others: &[SecondStats]) {
        for other in others {
            match self
                .seconds
                .binary_search_by_key(&other.second, |mine| mine.second)
            {
                Err(place) => self.seconds.insert(place, *other),
                Ok(place) => {
                    let mine = &mut self.seconds[place];
                    mine.due += other.due;
                    mine.ended += other.ended;
                    mine.errors += other.errors;
                    mine.bytes += other.bytes;
                    mine.open += other.open;
                    mine.due_p50_ms = mine.due_p50_ms.max(other.due_p50_ms);
                    mine.due_p90_ms = mine.due_p90_ms.max(other.due_p90_ms);
                    mine.due_p99_ms = mine.due_p99_ms.max(other.due_p99_ms);
                    mine.due_max_ms = mine.due_max_ms.max(other.due_max_ms);
                    mine.sent_p50_ms = mine.sent_p50_ms.max(other.sent_p50_ms);
                    mine.sent_p99_ms = mine.sent_p99_ms.max(other.sent_p99_ms);
                }
            }
        }
    }
}

/// Returns the time in which at least one of the runs was in progress, in seconds. Generators run at
/// the same time, and repetitions one after another. Runs without a start time are assumed to have
/// run at the same time as the others.
fn covered_seconds(runs: &[RunResult]) -> f64 {
    let of_unknown_start = runs.iter().filter(|run| run.started_unix_ms == 0);
    let unknown_s = of_unknown_start.map(|run| run.wall_s).fold(0.0, f64::max);
    let mut known: Vec<&RunResult> = runs.iter().filter(|run| run.started_unix_ms > 0).collect();
    known.sort_by_key(|run| run.started_unix_ms);
    let first_ms = known.first().map_or(0, |run| run.started_unix_ms);
    let (mut covered_s, mut end_s) = (0.0, 0.0_f64);
    for run in known {
        let start_s = (run.started_unix_ms - first_ms) as f64 / 1e3;
        let overlap_s = (end_s - start_s).max(0.0);
        covered_s += (run.wall_s - overlap_s).max(0.0);
        end_s = end_s.max(start_s + run.wall_s);
    }
    unknown_s.max(covered_s)
}

/// Returns a target, such as `manifest:http://host/`, with its password replaced by `***`.
fn without_password(target: &str) -> String {
    let at = target.find("http").unwrap_or(0);
    let (kind, url) = target.split_at(at);
    match url::Url::parse(url) {
        Ok(mut parsed) if parsed.password().is_some() => {
            // This call fails only for URLs that cannot have a password.
            let _ = parsed.set_password(Some("***"));
            format!("{kind}{parsed}")
        }
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_last_as_long_as_their_sum_and_generators_do_not() {
        let run = |start_s: u64, wall_s: f64| RunResult {
            started_unix_ms: start_s * 1000,
            wall_s,
            ..RunResult::default()
        };
        for (runs, expected) in [
            (vec![run(100, 10.0), run(130, 10.0), run(115, 10.0)], 30.0),
            (vec![run(100, 10.0), run(100, 12.0)], 12.0),
            (vec![run(100, 10.0), run(105, 10.0), run(120, 5.0)], 20.0),
            (vec![run(100, 10.0), run(101, 2.0)], 10.0),
            (vec![run(0, 10.0), run(0, 12.0)], 12.0),
            (vec![run(100, 10.25)], 10.25),
            (vec![], 0.0),
        ] {
            assert_eq!(RunResult::merge_runs(runs).wall_s, expected);
        }
    }

    #[test]
    fn targets_are_bounded_and_contain_no_password() {
        let mut run = RunResult::default();
        run.add_targets(["manifest:http://me:secret@host/a.mpd", "@file", "@file"]);
        assert_eq!(run.targets, ["manifest:http://me:***@host/a.mpd", "@file"]);
        let many: Vec<String> = (0..20).map(|n| format!("http://host/{n}")).collect();
        run.add_targets(many.iter().map(String::as_str));
        assert_eq!(run.targets.len(), TARGETS_MAX);
    }
}
