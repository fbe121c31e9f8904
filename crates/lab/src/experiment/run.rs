//! Through the rounds: every run deployed, measured, written down, and taken away again.

use super::deploy::{self, Deployed, PAUSE, Where, last_words, place_of};
use super::document::Sink;
use super::noise::Ticks;
use super::{Arm, Plan, Record};
use net::config::duration;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A run that is thrown away is repeated at once, at most this often.
const ATTEMPTS: u32 = 3;
const TIMEOUT: Duration = Duration::from_secs(300);
const LINK_LATE: Duration = Duration::from_millis(2);
const STEAL: f64 = 0.05;

/// How an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All runs were tried.
    Complete,
    /// Told to stop; the same command goes on from here.
    Stopped,
}

/// Where an experiment's files are.
struct Folders {
    /// The document's own.
    base: PathBuf,
    out: PathBuf,
}

/// Runs what has not been run yet. In `out`: `document.toml`, `runs.jsonl` (a [`Record`] a line),
/// `sources`, and while it lasts `scratch`. Paths in the document are from `base`. `say` is told of
/// every run. `stop` ends it at the next moment at which it can.
///
/// # Errors
/// A sentence, for what concerns all runs: files that cannot be written, a source that cannot be
/// made, a folder that holds another experiment. What concerns one run is in its record.
pub fn run(
    plan: &Plan,
    text: &str,
    base: &Path,
    out: &Path,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&Record),
) -> Result<Outcome, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| error.to_string());
    let folders = Folders {
        base: absolute(base)?,
        out: absolute(out)?,
    };
    claim(&folders.out, text)?;
    let sources = sources(plan, &folders)?;
    let records = folders.out.join("runs.jsonl");
    let done = Record::read_all(&records)?;
    let mut file = opened(&records).map_err(|error| format!("{}: {error}", records.display()))?;
    let bed = Bed {
        plan,
        out: &folders.out,
        sources: &sources,
        stop,
    };
    for round in 0..plan.rounds {
        let undone = |(_, arm): &(usize, &Arm)| {
            let same = |record: &&Record| record.round == round && record.arm == **arm;
            let mut tried = done.iter().filter(same);
            tried.all(|record| record.thrown.is_some())
        };
        let order = plan.order(round);
        let arms = order.iter().filter_map(|number| plan.arms.get(*number));
        let todo: Vec<(usize, &Arm)> = arms.enumerate().filter(undone).collect();
        let mut written = Ok(());
        bed.round(round, &todo, &mut |record| {
            say(&record);
            let line = serde_json::to_string(&record).map_err(|error| error.to_string());
            let line = line.and_then(|line| {
                writeln!(file, "{line}").map_err(|error| format!("{}: {error}", records.display()))
            });
            if written.is_ok() {
                written = line;
            }
        });
        written?;
        let _ = fs::remove_dir_all(folders.out.join("scratch"));
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(Outcome::Complete)
}

/// What all runs share.
struct Bed<'a> {
    plan: &'a Plan,
    out: &'a Path,
    sources: &'a BTreeMap<String, PathBuf>,
    stop: &'a AtomicBool,
}

impl Bed<'_> {
    /// A round's runs, as many at a time as the plan says, each in namespaces of its own; told of
    /// in the order in which they end.
    fn round(&self, round: u32, todo: &[(usize, &Arm)], tell: &mut dyn FnMut(Record)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (ended, records) = std::sync::mpsc::channel();
            for lane in 0..self.plan.parallel {
                let (next, ended) = (&next, ended.clone());
                scope.spawn(move || {
                    while let Some((place, arm)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.attempts(lane, round, *place, arm, &|record| {
                            // Who listens does so until all have ended.
                            let _ = ended.send(record);
                        });
                    }
                });
            }
            drop(ended);
            records.into_iter().for_each(tell);
        });
    }

    /// One arm of a round, until a run of it counts.
    fn attempts(&self, lane: u32, round: u32, place: usize, arm: &Arm, tell: &dyn Fn(Record)) {
        for attempt in 0..ATTEMPTS {
            let mut record = Record::new(round, place, attempt, arm);
            let ended = empty(self.out, lane).and_then(|scratch| {
                let at = Where {
                    folder: scratch.clone(),
                    sources: self.sources.clone(),
                    round,
                    // The same losses for every arm of a round.
                    seed: self.plan.document.seed.wrapping_add(round.into()),
                    ..Where::default()
                };
                let ended = one(self.plan, at, &mut record, self.stop);
                let _ = fs::remove_dir_all(&scratch);
                ended
            });
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            record.thrown = ended.err();
            let counts = record.thrown.is_none();
            tell(record);
            if counts {
                return;
            }
        }
    }
}

/// To be continued after its last whole line.
fn opened(records: &Path) -> std::io::Result<fs::File> {
    let file = OpenOptions::new().create(true).append(true).open(records)?;
    let text = fs::read(records)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n');
    file.set_len(whole.map_or(0, |at| at as u64 + 1))?;
    Ok(file)
}

/// The folder is this document's.
fn claim(out: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", out.display());
    fs::create_dir_all(out).map_err(failed)?;
    let own = out.join("document.toml");
    match fs::read_to_string(&own) {
        Ok(other) if other != text => Err(format!(
            "{} holds runs of another document, or of this one before it was changed: give another \
             --out, or remove it",
            out.display()
        )),
        Ok(_) => Ok(()),
        Err(_) => fs::write(own, text).map_err(failed),
    }
}

/// An empty folder for one run.
fn empty(out: &Path, lane: u32) -> Result<PathBuf, String> {
    let scratch = out.join("scratch").join(lane.to_string());
    let _ = fs::remove_dir_all(&scratch);
    let made = fs::create_dir_all(&scratch);
    made.map_err(|error| format!("{}: {error}", scratch.display()))?;
    Ok(scratch)
}

/// Where sources lie; those that are made are made now, unless they have been.
fn sources(plan: &Plan, folders: &Folders) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut found = BTreeMap::new();
    for (name, source) in &plan.document.source {
        let name = name.get_ref();
        let path = match (&source.media, &source.make) {
            (Some(media), _) => folders.base.join(media.get_ref()),
            (None, Some(command)) => make(name, command.get_ref(), folders)?,
            (None, None) => continue,
        };
        if !path.exists() {
            return Err(format!("source {name}: {} is not there", path.display()));
        }
        found.insert(name.clone(), path);
    }
    Ok(found)
}

fn make(name: &str, command: &str, folders: &Folders) -> Result<PathBuf, String> {
    let path = folders.out.join("sources").join(name);
    if path.exists() {
        return Ok(path);
    }
    // Made aside: what stands under its name is whole.
    let half = path.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    let failed = |error: std::io::Error| format!("source {name}: {error}");
    fs::create_dir_all(&half).map_err(failed)?;
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&half);
    shell.env("PATH", deploy::path()).env("HERE", &folders.base);
    let status = shell.status().map_err(failed)?;
    if !status.success() {
        return Err(format!("source {name}: {command}: {status}"));
    }
    fs::rename(&half, &path).map_err(failed)?;
    Ok(path)
}

/// One run: deploy, warm up, measure, collect. Taking away is the end of `deployed`.
fn one(plan: &Plan, at: Where<'_>, record: &mut Record, stop: &AtomicBool) -> Result<(), String> {
    let began = Instant::now();
    let folder = at.folder.clone();
    let arm = record.arm.clone();
    let deployed = Deployed::start(&plan.document, &arm, at, stop)?;
    for (name, sink) in &plan.document.sink {
        for _ in 0..sink.warm_up {
            let output = folder.join(format!("{}.warm-up", name.get_ref()));
            let child = deployed.command(
                sink.run.get_ref(),
                place_of(sink.at.as_ref()),
                None,
                &output,
            )?;
            wait(name.get_ref(), child, sink, &output, stop)?;
        }
    }
    let before: BTreeMap<&str, _> = reports(&deployed);
    let ticks = Ticks::now();
    let mut running = Vec::new();
    for (name, sink) in &plan.document.sink {
        let output = folder.join(format!("{}.out", name.get_ref()));
        let child = deployed.command(
            sink.run.get_ref(),
            place_of(sink.at.as_ref()),
            None,
            &output,
        )?;
        running.push((name.get_ref(), sink, child, output));
    }
    for (name, sink, child, output) in running {
        wait(name, child, sink, &output, stop)?;
        collect(name, sink, &output, &mut record.values)?;
    }
    record.noise = ticks.since();
    for (name, report) in reports(&deployed) {
        let Some(before) = before.get(name) else {
            continue;
        };
        for (what, value) in [
            (
                "lost",
                report.down.lost + report.up.lost - before.down.lost - before.up.lost,
            ),
            (
                "dropped",
                report.down.dropped + report.up.dropped - before.down.dropped - before.up.dropped,
            ),
            (
                "down-bytes",
                report.down.delivered_bytes - before.down.delivered_bytes,
            ),
            (
                "up-bytes",
                report.up.delivered_bytes - before.up.delivered_bytes,
            ),
        ] {
            record.values.insert(format!("{name}.{what}"), value as f64);
        }
        record
            .link_late_us
            .insert(name.to_owned(), report.lateness_us.p99);
    }
    record.took_s = began.elapsed().as_secs_f64();
    within_bounds(plan, record)
}

fn reports<'a>(deployed: &Deployed<'a>) -> BTreeMap<&'a str, crate::link::Report> {
    let links = deployed.links.iter();
    links.map(|(name, link)| (*name, link.report())).collect()
}

/// Until a sink has ended well.
fn wait(
    name: &str,
    mut child: Child,
    sink: &Sink,
    output: &Path,
    stop: &AtomicBool,
) -> Result<(), String> {
    let text = sink.timeout.as_ref().map(|text| text.get_ref().as_str());
    let timeout = text.and_then(|text| duration(text).ok()).unwrap_or(TIMEOUT);
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("sink {name}: {status}{}", last_words(output))),
            Ok(None) if stop.load(Ordering::Relaxed) => return Err("stopped".into()),
            Ok(None) if began.elapsed() > timeout => {
                return Err(format!(
                    "sink {name}: not ended within {timeout:?}{}",
                    last_words(output)
                ));
            }
            Ok(None) => std::thread::sleep(PAUSE),
            Err(error) => return Err(format!("sink {name}: {error}")),
        }
    }
}

/// A sink's quantities from the JSON that it printed: all of its output, or else the last line.
fn collect(
    name: &str,
    sink: &Sink,
    output: &Path,
    values: &mut BTreeMap<String, f64>,
) -> Result<(), String> {
    let said = fs::read_to_string(output).map_err(|error| format!("sink {name}: {error}"))?;
    let last = said.trim_end().lines().next_back().unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&said)
        .or_else(|_| serde_json::from_str(last))
        .map_err(|_| format!("sink {name} printed no JSON{}", last_words(output)))?;
    for (quantity, pointer) in &sink.measure {
        let found = json
            .pointer(pointer.get_ref())
            .and_then(serde_json::Value::as_f64);
        let found = found.ok_or_else(|| {
            format!(
                "sink {name}: no number at {} of what it printed",
                pointer.get_ref()
            )
        })?;
        values.insert(quantity.get_ref().clone(), found);
    }
    Ok(())
}

fn within_bounds(plan: &Plan, record: &Record) -> Result<(), String> {
    let bounds = &plan.document.bounds;
    let late = bounds
        .link_late
        .as_ref()
        .and_then(|text| duration(text.get_ref()).ok());
    let late = late.unwrap_or(LINK_LATE);
    for (name, late_us) in &record.link_late_us {
        if Duration::from_micros(*late_us) > late {
            return Err(format!(
                "link {name} was {late_us} us late at p99; at most {late:?}"
            ));
        }
    }
    let steal = bounds
        .steal
        .as_ref()
        .and_then(|text| crate::link::fraction(text.get_ref()).ok());
    let steal = steal.unwrap_or(STEAL);
    if record.noise.steal > steal {
        let percent = record.noise.steal * 100.0;
        return Err(format!(
            "{percent:.1} % of processor time was stolen; at most {}",
            steal * 100.0
        ));
    }
    Ok(())
}

impl Record {
    fn new(round: u32, place: usize, attempt: u32, arm: &Arm) -> Record {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Record {
            round,
            place,
            attempt,
            arm: arm.clone(),
            unix_s: since.as_secs_f64(),
            took_s: 0.0,
            values: BTreeMap::new(),
            link_late_us: BTreeMap::new(),
            noise: super::noise::Noise::default(),
            thrown: None,
        }
    }

    /// All records of a file; none where it is not there. The last line may be cut short, as a
    /// crash leaves it.
    ///
    /// # Errors
    /// The number of a line that is no record.
    pub fn read_all(path: &Path) -> Result<Vec<Record>, String> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let lines = text.get(..whole).unwrap_or_default().lines().enumerate();
        let read = |(number, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))
        };
        lines.map(read).collect()
    }
}
