//! Results out of files: JSON documents, raw records, HDR logs; each by what it holds, not its name.

use crate::rate::Kind;
use crate::result::{Record, Run, Second, Stretch, Times, VERSION, read_log, read_records};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Longest JSON document or log that is read, in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// Longest run that records may tell of, in milliseconds: thirty days.
const MS_MAX: f64 = 30.0 * 86_400_000.0;

/// Steps that records may tell of.
const STEPS_MAX: u32 = 1000;

/// Reads a result.
///
/// # Errors
/// What is none of the three, and why.
pub fn run(path: &Path) -> Result<Run, String> {
    let shown = path.display();
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| format!("{shown}: {error}"))?;
    let read = file.take(64).read_to_end(&mut start);
    read.map_err(|error| format!("{shown}: {error}"))?;
    // A log begins with a comment, which JSON has not.
    let mut run = if start.starts_with(b"#") {
        from_log(&whole(path)?)
    } else if start.starts_with(b"{\"summary\"") || start.starts_with(b"{\"headwater_load\"") {
        document(&whole(path)?)
    } else {
        from_records(path)
    }
    .map_err(|error| format!("{shown}: {error}"))?;
    if run.name.is_empty() {
        let name = path.file_name().unwrap_or_default();
        run.name = name.to_string_lossy().into_owned();
    }
    Ok(run)
}

fn whole(path: &Path) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.len() > BYTES_MAX {
        return Err(format!("{}: longer than {BYTES_MAX} bytes", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    Ok(bytes)
}

fn document(bytes: &[u8]) -> Result<Run, String> {
    let run: Run = serde_json::from_slice(bytes).map_err(|error| format!("no result: {error}"))?;
    match run.headwater_load {
        VERSION => Ok(run),
        other => Err(format!(
            "a result of version {other}; this program reads {VERSION}"
        )),
    }
}

/// Only distributions: a log holds no statuses and no bytes.
fn from_log(bytes: &[u8]) -> Result<Run, String> {
    let mut run = Run {
        headwater_load: VERSION,
        offered: "of an HDR log".into(),
        generators: 1,
        ..Run::default()
    };
    for (tag, times) in read_log(bytes)? {
        let mut parts = tag.split('/');
        let step = parts
            .next()
            .and_then(|part| part.strip_prefix("step")?.parse::<u32>().ok());
        let step = step.unwrap_or(1).clamp(1, STEPS_MAX) - 1;
        let kind = parts
            .next()
            .and_then(|name| Kind::ALL.into_iter().find(|kind| kind.name() == name));
        let cell = stretch(&mut run, step)
            .kinds
            .entry(kind.unwrap_or(Kind::Other))
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

fn stretch(run: &mut Run, step: u32) -> &mut Stretch {
    let step = step as usize;
    if run.steps.len() <= step {
        run.steps.resize_with(step + 1, Stretch::default);
    }
    &mut run.steps[step]
}

/// Everything but the generator's own lateness and its connections.
fn from_records(path: &Path) -> Result<Run, String> {
    let mut run = Run {
        headwater_load: VERSION,
        offered: "of records".into(),
        generators: 1,
        ..Run::default()
    };
    let mut seconds: BTreeMap<u64, (Second, Times, Times)> = BTreeMap::new();
    let mut wrong = None;
    read_records(path, |record| {
        if !(record.end_ms <= MS_MAX && (0.0..=MS_MAX).contains(&record.due_ms))
            || record.step >= STEPS_MAX
        {
            wrong.get_or_insert(format!("record {} lies outside of any run", record.n));
            return;
        }
        count(&mut run, &record);
        let (second, due, sent) = seconds.entry((record.end_ms / 1e3) as u64).or_default();
        second.ended += 1;
        second.bytes += record.bytes;
        second.errors += u64::from(record.fault.is_some() || record.status >= 400);
        due.record(between(record.due_ms, record.end_ms));
        sent.record(between(
            record.sent_ms.unwrap_or(record.end_ms),
            record.end_ms,
        ));
        seconds
            .entry((record.due_ms / 1e3) as u64)
            .or_default()
            .0
            .due += 1;
    })?;
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    run.seconds = seconds
        .into_iter()
        .map(|(number, (second, due, sent))| Second {
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

fn count(run: &mut Run, record: &Record) {
    run.wall_s = run.wall_s.max(record.end_ms / 1e3);
    let stretch = stretch(run, record.step);
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
    cell.from_due.record(between(record.due_ms, record.end_ms));
    if let Some(sent) = record.sent_ms {
        cell.from_sent.record(between(sent, record.end_ms));
        if let Some(first) = record.first_ms {
            cell.first_byte.record(between(sent, first));
        }
    }
}

fn between(from_ms: f64, to_ms: f64) -> Duration {
    Duration::try_from_secs_f64((to_ms - from_ms).max(0.0) / 1e3).unwrap_or_default()
}
