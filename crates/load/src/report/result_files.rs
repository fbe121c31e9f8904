//! Reads result files: JSON documents, raw records and HDR logs. The start of a file shows its
//! format.

use super::input_file::InputFile;
use crate::rate::RequestKind;
use crate::rate::url_groups::url_group;
use crate::result::{
    HdrLogError, LatencyHistogram, RecordError, RequestRecord, RunResult, SecondStats, StepResult,
    VERSION, read_hdr_log, read_records_from, url_group_or_other,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Maximum length of a JSON document or HDR log, in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// Maximum due time and end time of a request in raw records, in milliseconds (thirty days).
const MS_MAX: f64 = 30.0 * 86_400_000.0;

/// Maximum number of load steps in a result file.
const STEPS_MAX: u32 = 1000;

/// The path of a result file that cannot be read, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct ResultFileError {
    path: String,
    cause: ResultFileCause,
}

/// The cause of a [`ResultFileError`].
#[derive(Debug, thiserror::Error)]
enum ResultFileCause {
    #[error("{}", net::describe_io_error(.0))]
    Read(#[from] std::io::Error),
    #[error("longer than {BYTES_MAX} bytes; report on fewer or shorter runs")]
    TooLong,
    #[error("invalid result: {0}; expected a file written by --json, --records or --hdr")]
    Json(#[from] serde_json::Error),
    #[error("result of version {0}; this program reads version {VERSION}")]
    Version(u32),
    #[error(transparent)]
    Log(#[from] HdrLogError),
    #[error(transparent)]
    Records(#[from] RecordError),
    #[error("record {0} has times or steps beyond the longest run; the file is damaged")]
    OutOfRange(u64),
}

/// Reads the result of a run. The path `-` means standard input.
///
/// # Errors
/// The file cannot be read or has none of the three formats.
pub fn read_result(path: &Path) -> Result<RunResult, ResultFileError> {
    let mut run = read_any_format(path).map_err(|cause| ResultFileError {
        path: match path.as_os_str() == "-" {
            true => "standard input".into(),
            false => path.display().to_string(),
        },
        cause,
    })?;
    if run.name.is_empty() && path.as_os_str() != "-" {
        let name = path.file_name().unwrap_or_default();
        run.name = name.to_string_lossy().into_owned();
    }
    Ok(run)
}

fn read_any_format(path: &Path) -> Result<RunResult, ResultFileCause> {
    let file = InputFile::open_input(path)?;
    let starts_with = |text: &str| file.start.starts_with(text.as_bytes());
    // An HDR log starts with a comment (`#`). JSON has no comments.
    if starts_with("#") {
        result_from_hdr_log(&read_bounded(file)?)
    } else if starts_with("{\"summary\"") || starts_with("{\"headwater_load\"") {
        result_from_json(&read_bounded(file)?)
    } else {
        result_from_records(file)
    }
}

fn read_bounded(file: InputFile) -> Result<Vec<u8>, ResultFileCause> {
    let mut bytes = Vec::new();
    let mut reader = file.into_reader().take(BYTES_MAX + 1);
    reader.read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(ResultFileCause::TooLong),
        false => Ok(bytes),
    }
}

fn result_from_json(bytes: &[u8]) -> Result<RunResult, ResultFileCause> {
    let run: RunResult = serde_json::from_slice(bytes)?;
    match run.headwater_load {
        VERSION => Ok(run),
        other => Err(ResultFileCause::Version(other)),
    }
}

/// Restores only the latency distributions, because an HDR log contains no statuses and no body
/// bytes.
fn result_from_hdr_log(bytes: &[u8]) -> Result<RunResult, ResultFileCause> {
    let log = read_hdr_log(bytes)?;
    let facts = log.facts.unwrap_or_default();
    let mut run = RunResult {
        headwater_load: VERSION,
        offered: facts.offered,
        program_version: facts.program_version,
        started_unix_ms: facts.started_unix_ms,
        generators: 1,
        wall_s: log.end_s,
        ..RunResult::default()
    };
    run.add_targets(facts.targets.iter().map(String::as_str));
    for (number, [start_s, end_s]) in (0..STEPS_MAX).zip(facts.steps) {
        let step = step_mut(&mut run, number);
        (step.start_s, step.end_s) = (start_s, end_s);
    }
    for (tag, times) in log.histograms {
        let mut parts = tag.split('/');
        let step = parts
            .next()
            .and_then(|part| part.strip_prefix("step")?.parse::<u32>().ok());
        let step = step.unwrap_or(1).clamp(1, STEPS_MAX) - 1;
        let kind = parts.next().and_then(|name| {
            RequestKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
        });
        let step = step_mut(&mut run, step);
        let cell = step
            .kinds
            .entry(kind.unwrap_or(RequestKind::Other))
            .or_default();
        match parts.next() {
            Some("sent") => cell.from_sent.merge(&times),
            _ => {
                cell.requests += times.count();
                cell.from_due.merge(&times);
                // The log does not contain the requests in `RunResult::unsent`, so `due` does not
                // include these requests.
                step.due += if facts.closed_loop { 0 } else { times.count() };
            }
        }
    }
    Ok(run)
}

fn step_mut(run: &mut RunResult, step: u32) -> &mut StepResult {
    let step = step as usize;
    if run.steps.len() <= step {
        run.steps.resize_with(step + 1, StepResult::default);
    }
    &mut run.steps[step]
}

/// Restores the result from raw records. Values that records do not contain stay empty, such as the
/// lateness and the connections of the generator.
fn result_from_records(file: InputFile) -> Result<RunResult, ResultFileCause> {
    let mut run = RunResult {
        headwater_load: VERSION,
        generators: 1,
        ..RunResult::default()
    };
    let mut seconds: BTreeMap<u64, (SecondStats, LatencyHistogram, LatencyHistogram)> =
        BTreeMap::new();
    let mut out_of_range = None;
    read_records_from(file.into_reader(), |record| {
        if !(record.end_ms <= MS_MAX && (0.0..=MS_MAX).contains(&record.due_ms))
            || record.step >= STEPS_MAX
        {
            out_of_range.get_or_insert(record.n);
            return;
        }
        if record.abandoned {
            run.abandoned += 1;
            return;
        }
        count_record(&mut run, &record);
        if !record.url.is_empty() {
            run.add_targets([&*record.url]);
        }
        let (second, due, sent) = seconds.entry((record.end_ms / 1e3) as u64).or_default();
        second.ended += 1;
        second.bytes += record.bytes;
        second.errors += u64::from(record.fault.is_some() || record.status >= 400);
        due.record(duration_between(record.due_ms, record.end_ms));
        sent.record(duration_between(
            record.sent_ms.unwrap_or(record.end_ms),
            record.end_ms,
        ));
        seconds
            .entry((record.due_ms / 1e3) as u64)
            .or_default()
            .0
            .due += 1;
    })?;
    if let Some(n) = out_of_range {
        return Err(ResultFileCause::OutOfRange(n));
    }
    run.seconds = seconds
        .into_iter()
        .map(|(number, (second, due, sent))| SecondStats {
            second: number,
            due_p50_ms: due.quantile_ms(0.5),
            due_p90_ms: due.quantile_ms(0.9),
            due_p99_ms: due.quantile_ms(0.99),
            due_max_ms: due.max_ms(),
            sent_p50_ms: sent.quantile_ms(0.5),
            sent_p99_ms: sent.quantile_ms(0.99),
            ..second
        })
        .collect();
    Ok(run)
}

fn count_record(run: &mut RunResult, record: &RequestRecord) {
    run.wall_s = run.wall_s.max(record.end_ms / 1e3);
    if !record.url.is_empty() {
        let group = url_group_or_other(&mut run.url_groups, &url_group(&record.url));
        group.requests += 1;
        group.errors += u64::from(record.fault.is_some() || record.status >= 400);
        group.bytes += record.bytes;
        let took = duration_between(record.due_ms, record.end_ms);
        group.latency.record(took);
    }
    let stretch = step_mut(run, record.step);
    stretch.due += 1;
    if stretch.end_s == 0.0 {
        stretch.start_s = record.due_ms / 1e3;
    }
    stretch.start_s = stretch.start_s.min(record.due_ms / 1e3);
    stretch.end_s = stretch.end_s.max(record.due_ms / 1e3);
    let cell = stretch.kinds.entry(record.kind).or_default();
    cell.requests += 1;
    cell.bytes += record.bytes;
    cell.late += u64::from(record.late);
    match record.fault {
        Some(fault) => *cell.faults.entry(fault).or_default() += 1,
        None => *cell.statuses.entry(record.status).or_default() += 1,
    }
    cell.from_due
        .record(duration_between(record.due_ms, record.end_ms));
    if let Some(sent) = record.sent_ms {
        cell.from_sent.record(duration_between(sent, record.end_ms));
        if let Some(first) = record.first_ms {
            cell.first_byte.record(duration_between(sent, first));
        }
    }
}

fn duration_between(from_ms: f64, to_ms: f64) -> Duration {
    Duration::try_from_secs_f64((to_ms - from_ms).max(0.0) / 1e3).unwrap_or_default()
}
