//! Reads result files: JSON documents, raw records and HDR logs, recognized by their content.

use crate::rate::RequestKind;
use crate::result::{
    HdrLogError, LatencyHistogram, RecordError, RequestRecord, RunResult, SecondStats, StepResult,
    VERSION, read_log, read_records,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Limit of a JSON document or log, in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// Limit of a run's length in records, in milliseconds: thirty days.
const MS_MAX: f64 = 30.0 * 86_400_000.0;

/// Limit of steps in records.
const STEPS_MAX: u32 = 1000;

/// A result file that cannot be read.
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

/// Reads the result of a run.
///
/// # Errors
/// The file cannot be read or has none of the three formats.
pub fn read_result(path: &Path) -> Result<RunResult, ResultFileError> {
    let mut run = read_any_format(path).map_err(|cause| ResultFileError {
        path: path.display().to_string(),
        cause,
    })?;
    if run.name.is_empty() {
        let name = path.file_name().unwrap_or_default();
        run.name = name.to_string_lossy().into_owned();
    }
    Ok(run)
}

fn read_any_format(path: &Path) -> Result<RunResult, ResultFileCause> {
    let mut start = Vec::new();
    std::fs::File::open(path)?
        .take(64)
        .read_to_end(&mut start)?;
    // A log starts with a comment, which JSON does not have.
    if start.starts_with(b"#") {
        run_from_log(&read_bounded(path)?)
    } else if start.starts_with(b"{\"summary\"") || start.starts_with(b"{\"headwater_load\"") {
        run_from_json(&read_bounded(path)?)
    } else {
        run_from_records(path)
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, ResultFileCause> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > BYTES_MAX {
        return Err(ResultFileCause::TooLong);
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn run_from_json(bytes: &[u8]) -> Result<RunResult, ResultFileCause> {
    let run: RunResult = serde_json::from_slice(bytes)?;
    match run.headwater_load {
        VERSION => Ok(run),
        other => Err(ResultFileCause::Version(other)),
    }
}

/// Restores distributions only: a log contains no statuses and no bytes.
fn run_from_log(bytes: &[u8]) -> Result<RunResult, ResultFileCause> {
    let mut run = RunResult {
        headwater_load: VERSION,
        offered: "HDR log".into(),
        generators: 1,
        ..RunResult::default()
    };
    for (tag, times) in read_log(bytes)? {
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
        let cell = step_mut(&mut run, step)
            .kinds
            .entry(kind.unwrap_or(RequestKind::Other))
            .or_default();
        match parts.next() {
            Some("sent") => cell.from_sent.add(&times),
            _ => {
                cell.requests += times.count();
                cell.from_due.add(&times);
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

/// Restores everything except the generator's lateness and connections.
fn run_from_records(path: &Path) -> Result<RunResult, ResultFileCause> {
    let mut run = RunResult {
        headwater_load: VERSION,
        offered: "records".into(),
        generators: 1,
        ..RunResult::default()
    };
    let mut seconds: BTreeMap<u64, (SecondStats, LatencyHistogram, LatencyHistogram)> =
        BTreeMap::new();
    let mut out_of_range = None;
    read_records(path, |record| {
        if !(record.end_ms <= MS_MAX && (0.0..=MS_MAX).contains(&record.due_ms))
            || record.step >= STEPS_MAX
        {
            out_of_range.get_or_insert(record.n);
            return;
        }
        count(&mut run, &record);
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

fn count(run: &mut RunResult, record: &RequestRecord) {
    run.wall_s = run.wall_s.max(record.end_ms / 1e3);
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
