//! `headwater lab validate`, `run` and `list`.

use super::nats::{NATS, meeting};
use super::{Stop, layers, say, tell};
use crate::experiment::{Fault, Job, Outcome, Plan, Progress, Written, known, run as run_job};
use crate::link::{available, netem_available};
use crate::nbmp::{self, Kind, Level};
use clap::{Arg, ArgAction, ArgMatches, Command};
use net::config::{Knob, flags as knob_flags};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

const AFTER: &str = "\
Every arm is deployed, waited for until it is healthy, warmed up, measured and taken away again,
in rounds that interleave the arms. Stopped (Ctrl-C) or killed, nothing stays running, and the same
command goes on where it was. In DIR: runs.jsonl (a record a run), machine.jsonl, report.html,
report.json, report.md.

With --nats the document's places are spread over agents (`headwater lab agent`).

Exit status: 0; 1 if an arm could not be measured or an expectation fails; 2 if the document is wrong;
3 if this machine makes no links; 130 if it was stopped.

Examples:
  headwater lab run experiments/congestion.toml --out results/congestion --scale small
  headwater lab run load.toml --out results/load --nats nats://10.0.0.1:4222 --agents 3";

const KNOBS: &[&[Knob]] = &[NATS, RUN];

const RUN: &[Knob] = &[Knob::new(
    "agents",
    "N",
    "1",
    "With --nats: begin when so many are there and free",
)];

const VALIDATE: &str = "\
TOML is checked as an experiment. JSON is checked as a workflow description of NBMP (ISO/IEC
23090-8), as far as documents in use keep to it, or with --strict wholly; and then, without --nbmp,
as an experiment. Places in JSON are JSONPaths.

Exit status: 0 nothing is wrong; 2 something is.

Examples:
  headwater lab validate experiments/congestion.toml
  headwater lab validate --strict --nbmp workflow.json";

fn file() -> Arg {
    Arg::new("file")
        .required(true)
        .value_name("FILE")
        .help("An experiment's document: TOML, or an NBMP workflow description (JSON)")
}

pub(super) fn scale() -> Arg {
    let scale = Arg::new("scale").long("scale").value_name("NAME");
    scale.help("In the size of this name, such as small [default: as written]")
}

/// The words.
pub(super) fn commands() -> [Command; 3] {
    let out = Arg::new("out").long("out").value_name("DIR").required(true);
    let folder = Arg::new("folder")
        .value_name("FOLDER")
        .default_value("experiments");
    let validate = Command::new("validate")
        .about("Say what is wrong in an experiment's document, and where")
        .after_help(VALIDATE)
        .args([
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("As JSON"),
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .help("As NBMP, hold it to all that the standard asks for"),
            Arg::new("nbmp")
                .long("nbmp")
                .action(ArgAction::SetTrue)
                .help("Only as NBMP: it need not be an experiment that can be run"),
        ])
        .arg(file());
    [
        Command::new("run")
            .about("Run an experiment: every arm of its sweep, in interleaved rounds")
            .after_help(AFTER)
            .args([file(), out.help("Where its results go"), scale()])
            .args(knob_flags(KNOBS)),
        validate,
        Command::new("list")
            .about("List the experiments of a folder")
            .after_help("Example:\n  headwater lab list experiments")
            .arg(folder.help("Where documents lie")),
    ]
}

/// `validate`.
pub(super) fn validate(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let path = text_of(flags, "file");
    let text = read(path)?;
    let judged = judged(&text, flags.get_flag("strict"), flags.get_flag("nbmp"));
    let faults = judged.as_ref().err().cloned().unwrap_or_default();
    named(path, &judged.unwrap_or_default());
    if flags.get_flag("json") {
        let one = |fault: &crate::experiment::Fault| serde_json::json!({"line": fault.line, "column": fault.column, "path": fault.path, "what": fault.what});
        let all = serde_json::Value::Array(faults.iter().map(one).collect());
        say(format_args!("{all}\n"));
    } else {
        faults
            .iter()
            .for_each(|fault| say(format_args!("{path}:{fault}\n")));
    }
    Ok(ExitCode::from(if faults.is_empty() { 0 } else { 2 }))
}

/// What a run would not act on.
///
/// # Errors
/// All that is wrong.
fn judged(text: &str, strict: bool, only_nbmp: bool) -> Result<Vec<String>, Vec<Fault>> {
    if strict || only_nbmp {
        let level = if strict { Level::Strict } else { Level::Lax };
        let found = match nbmp::read(text.as_bytes()) {
            Ok(workflow) => nbmp::validate(&workflow, Kind::Workflow, level, &known()),
            Err(offence) => vec![offence],
        };
        if !found.is_empty() {
            return Err(found.into_iter().map(Fault::from).collect());
        }
        if only_nbmp {
            return Ok(Vec::new());
        }
    }
    Written::read(text).map(|written| written.idle)
}

/// Says what is carried along without effect.
fn named(path: &str, idle: &[String]) {
    if !idle.is_empty() {
        let idle = idle.join(", ");
        tell(format_args!("{path}: not acted on: {idle}"));
    }
}

/// `run`.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let path = text_of(flags, "file");
    let text = read(path)?;
    let scale = flags.get_one::<String>("scale").map(String::as_str);
    let (plan, text) = plan(path, &text, scale)?;
    let layers = layers(KNOBS, flags)?;
    if layers.print {
        say(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let meeting = meeting(&layers, "agents")?;
    if meeting.is_none() {
        available().map_err(Stop::Unable)?;
        let links = plan.document.link.values();
        if links
            .filter_map(|link| link.by.as_ref())
            .any(|by| by.get_ref() == "netem")
        {
            let ours = "; without by = \"netem\" the link is ours";
            netem_available().map_err(|what| Stop::Unable(what + ours))?;
        }
    }
    // The parent of a bare name is empty, and means this folder.
    let base = Path::new(path).parent();
    let base = base.filter(|base| !base.as_os_str().is_empty());
    let base = base.unwrap_or(Path::new("."));
    let job = Job {
        plan,
        text,
        base: base.to_owned(),
        out: PathBuf::from(text_of(flags, "out")),
        meeting,
    };
    let stop = stopper().map_err(|error| error.to_string())?;
    let plan = &job.plan;
    let (arms, rounds) = (plan.arms.len(), plan.rounds);
    let all = rounds as usize * arms;
    tell(format_args!(
        "{}: runs: {all} (arms: {arms}, rounds: {rounds})",
        plan.document.name
    ));
    let looks_on = std::io::stderr().is_terminal();
    let outcome = run_job(&job, &stop, &mut |progress| {
        // Whoever looked on may have gone: no reason to end what is measured.
        let _ = std::io::stderr().write_all(line(progress, looks_on).as_bytes());
    })?;
    if outcome == Outcome::Stopped {
        tell("stopped; the same command goes on from here");
        return Ok(ExitCode::from(130));
    }
    super::report::tell(&job.plan, &job.text, &job.out)
}

/// What is said of a run when it begins, where a person looks on, and after it.
fn line(progress: &Progress, on_terminal: bool) -> String {
    let values = progress.arm.iter();
    let arm: Vec<String> = values
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let left = progress
        .left_s
        .map_or(String::new(), |s| format!(" · {} left", time(s)));
    let (done, all) = (progress.done, progress.all);
    let mut run = format!("round {}", progress.round + 1);
    if !arm.is_empty() {
        run += &format!(" · {}", arm.join(" "));
    }
    // What was said of a run that goes on is written over.
    let over = if on_terminal { "\r\x1b[K" } else { "" };
    match &progress.ended {
        None if on_terminal => format!("{over}{done} of {all}{left} · {run} …"),
        None => String::new(),
        Some(record) => {
            let said = match &record.thrown {
                Some(why) => format!("thrown away: {why}"),
                None => format!("{:.1} s", record.took_s),
            };
            format!("{over}{done} of {all}{left} · {run} · {said}\n")
        }
    }
}

/// Seconds, as people say them.
fn time(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// `list`.
pub(super) fn list(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let folder = text_of(flags, "folder");
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml" || e == "json"))
    {
        let text = read(&path.display().to_string())?;
        match Written::read(&text) {
            Ok(written) => say(format_args!(
                "{:<40} {}\n",
                path.display(),
                written.document.name
            )),
            Err(faults) => {
                let first = faults.first().map(Fault::to_string).unwrap_or_default();
                say(format_args!("{:<40} {first}\n", path.display()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What will be done, and the document as TOML.
pub(super) fn plan(path: &str, text: &str, scale: Option<&str>) -> Result<(Plan, String), Stop> {
    let written = Written::read(text).map_err(|faults| {
        let lines: Vec<String> = faults
            .iter()
            .map(|fault| format!("{path}:{fault}"))
            .collect();
        wrong(lines.join("\n"))
    })?;
    let plan = Plan::new(written.document, scale).map_err(wrong)?;
    named(path, &written.idle);
    Ok((plan, written.text))
}

pub(super) fn wrong(what: String) -> Stop {
    Stop::Usage(net::config::Wrong(what))
}

pub(super) fn read(path: &str) -> Result<String, Stop> {
    std::fs::read_to_string(path).map_err(|error| wrong(format!("{path}: {error}")))
}

pub(super) fn text_of<'a>(flags: &'a ArgMatches, name: &str) -> &'a str {
    flags.get_one::<String>(name).map_or("", String::as_str)
}

/// Becomes true at SIGTERM or Ctrl-C.
fn stopper() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    // Heard from now on, not from whenever the thread gets to it.
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            seen.store(true, Ordering::Relaxed);
        });
    });
    Ok(stop)
}
