//! `headwater lab validate`, `run` and `list`.

use super::command_error::CommandError;
use super::nats_settings::{NATS, create_executor_connector};
use super::output::{print_message, print_output};
use crate::document_format::ParsedDocument;
use crate::experiment::{
    DocumentFault, ExperimentJob, ExperimentOutcome, ExperimentProgress, RunPlan,
    execute_missing_runs, find_missing_programs,
};
use crate::link::{check_links_available, check_netem_available};
use clap::{Arg, ArgAction, ArgMatches, Command};
use net::config::{Setting, SettingLayers, build_command_args};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

const AFTER: &str = "\
Deploys, warms up, measures and removes every arm, in rounds that interleave the arms. After Ctrl-C
or a crash nothing keeps running, and the same command resumes the experiment. DIR contains
runs.jsonl (one record per run), machine.jsonl, report.html, report.json, report.md and plots.

With --nats, the document's places are distributed over agents (`headwater lab agent`).

Standard output is a summary and the path of the report. If the first attempt of every arm fails in
the same way, the experiment stops.

Exit status: 0 success; 1 an arm could not be measured or an expectation fails; 2 the document is
invalid; 3 this machine cannot emulate links; 4 --for is over and runs are missing; 130 stopped.

Examples:
  headwater lab run experiments/congestion.toml --out results/congestion --scale small
  headwater lab run experiments/scaling.toml --out results/scaling --for 40min
  headwater lab run load.toml --out results/load --nats nats://10.0.0.1:4222 --agents 3";

/// Exit status if runs are missing when the time limit (`--for`) expires.
const TIME_OVER: u8 = 4;

const SETTINGS: &[&[Setting]] = &[NATS, RUN];

const RUN: &[Setting] = &[Setting::new(
    "agents",
    "N",
    "1",
    "With --nats: minimum number of free agents",
)];

const VALIDATE: &str = "\
Checks TOML as an experiment. Checks JSON as a workflow description of NBMP (ISO/IEC 23090-8);
--strict checks everything that the standard requires. Then checks it as an experiment, unless
--nbmp is set. Faults in JSON are reported with their JSONPath. Finally checks that the programs of an experiment's commands exist.

Exit status: 0 the document is valid; 2 it is invalid; 3 it is valid, but this machine lacks a
program.

Examples:
  headwater lab validate experiments/congestion.toml
  headwater lab validate --strict --nbmp workflow.json";

fn file_argument() -> Arg {
    Arg::new("file").required(true).value_name("FILE").help(
        "Experiment document: TOML, or an NBMP workflow description (JSON); - is standard input",
    )
}

pub(super) fn scale_argument() -> Arg {
    let scale = Arg::new("scale").long("scale").value_name("NAME");
    scale.help("Scale of the document, such as small [default: as written]")
}

fn time_limit_argument() -> Arg {
    Arg::new("for")
        .long("for")
        .value_name("DURATION")
        .value_parser(net::config::parse_duration)
        .help("Skip runs that would finish after this time, such as 40min [default: no limit]")
}

/// Defines the commands.
pub(super) fn define_commands() -> [Command; 3] {
    let out = Arg::new("out").long("out").value_name("DIR").required(true);
    let folder = Arg::new("folder")
        .value_name("FOLDER")
        .default_value("experiments");
    let validate = Command::new("validate")
        .about("Report the faults of an experiment document")
        .after_help(VALIDATE)
        .args([
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print the faults as JSON"),
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .help("Check everything that the NBMP standard requires"),
            Arg::new("nbmp")
                .long("nbmp")
                .action(ArgAction::SetTrue)
                .help("Check only NBMP, not whether it can be run as an experiment"),
        ])
        .arg(file_argument());
    [
        Command::new("run")
            .about("Run an experiment: every arm of its sweep, in interleaved rounds")
            .after_help(AFTER)
            .args([
                file_argument(),
                out.help("Result folder"),
                scale_argument(),
                time_limit_argument(),
            ])
            .args(build_command_args(SETTINGS)),
        validate,
        Command::new("list")
            .about("List the experiments of a folder")
            .after_help("Example:\n  headwater lab list experiments")
            .arg(folder.help("Folder of documents")),
    ]
}

/// `validate`.
pub(super) fn run_validate(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let path = argument_value(flags, "file");
    let text = read_document_text(path)?;
    let judged = validate_text(&text, flags.get_flag("strict"), flags.get_flag("nbmp"));
    let (faults, status) = match &judged {
        Err(faults) => (faults.clone(), 2),
        Ok(None) => (Vec::new(), 0),
        Ok(Some(written)) => {
            print_ignored_members(path, &written.ignored_members);
            let missing = find_missing_programs(&written.document, text_if_toml(&text));
            let status = if missing.is_empty() { 0 } else { 3 };
            (missing, status)
        }
    };
    if flags.get_flag("json") {
        let one = |fault: &crate::experiment::DocumentFault| serde_json::json!({"line": fault.line, "column": fault.column, "path": fault.path, "what": fault.what});
        let all = serde_json::Value::Array(faults.iter().map(one).collect());
        print_output(format_args!("{all}\n"));
    } else {
        faults
            .iter()
            .for_each(|fault| print_output(format_args!("{path}:{fault}\n")));
    }
    Ok(ExitCode::from(status))
}

/// Returns the text if it is TOML, or `None` if it is JSON.
fn text_if_toml(text: &str) -> Option<&str> {
    (!text.trim_start().starts_with('{')).then_some(text)
}

/// Returns the document, or `None` if only its conformance to NBMP was checked.
///
/// # Errors
/// The text is invalid; all faults are returned.
fn validate_text(
    text: &str,
    strict: bool,
    only_nbmp: bool,
) -> Result<Option<ParsedDocument>, Vec<DocumentFault>> {
    if strict || only_nbmp {
        check_conformance(text, strict)?;
        if only_nbmp {
            return Ok(None);
        }
    }
    ParsedDocument::parse_and_check(text).map(Some)
}

/// Validates a text as a workflow description.
///
/// # Errors
/// The text is invalid; all faults are returned.
#[cfg(feature = "nbmp")]
fn check_conformance(text: &str, strict: bool) -> Result<(), Vec<DocumentFault>> {
    use crate::document_format::known_functions;
    use crate::nbmp::{self, DescriptionKind, ValidationStrictness};
    let level = if strict {
        ValidationStrictness::Strict
    } else {
        ValidationStrictness::Lenient
    };
    let found = match nbmp::parse_bounded_json(text.as_bytes()) {
        Ok(workflow) => nbmp::validate_description(
            &workflow,
            DescriptionKind::Workflow,
            level,
            &known_functions(),
        ),
        Err(offence) => vec![offence],
    };
    match found.is_empty() {
        true => Ok(()),
        false => Err(found.into_iter().map(DocumentFault::from).collect()),
    }
}

#[cfg(not(feature = "nbmp"))]
fn check_conformance(_: &str, _: bool) -> Result<(), Vec<DocumentFault>> {
    let what = "--strict and --nbmp need the feature nbmp";
    Err(vec![DocumentFault::of_whole_document(
        super::missing_feature_message(what, "nbmp"),
    )])
}

/// Prints the NBMP members that a run ignores.
fn print_ignored_members(path: &str, idle: &[String]) {
    if !idle.is_empty() {
        let idle = idle.join(", ");
        print_message(format_args!("{path}: ignored members: {idle}"));
    }
}

/// `run`.
pub(super) fn run_experiment(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let path = argument_value(flags, "file");
    let text = read_document_text(path)?;
    let scale = flags.get_one::<String>("scale").map(String::as_str);
    let (plan, text) = parse_plan(path, &text, scale)?;
    let layers = SettingLayers::read_settings(SETTINGS, &[], flags)?;
    if layers.print {
        print_output(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let connect = create_executor_connector(&layers)?;
    if connect.is_none() {
        check_links_available().map_err(CommandError::from_unavailable)?;
        let links = plan.document.link.values();
        if links
            .filter_map(|link| link.by.as_ref())
            .any(|by| by.get_ref() == "netem")
        {
            check_netem_available().map_err(CommandError::from_unavailable)?;
        }
    }
    // The parent of a bare file name is empty and means the current folder.
    let base = Path::new(path).parent();
    let base = base.filter(|base| !base.as_os_str().is_empty());
    let base = base.unwrap_or(Path::new("."));
    let job = ExperimentJob {
        plan,
        text,
        base: base.to_owned(),
        out: PathBuf::from(argument_value(flags, "out")),
        time_slice: flags.get_one::<Duration>("for").copied(),
    };
    let stop = watch_signals().map_err(|error| error.to_string())?;
    let plan = &job.plan;
    let (arms, rounds) = (plan.arms.len(), plan.rounds);
    let all = rounds as usize * arms;
    print_message(format_args!(
        "{}: runs: {all} (arms: {arms}, rounds: {rounds})",
        plan.document.name
    ));
    let looks_on = std::io::stderr().is_terminal();
    let outcome = execute_missing_runs(&job, connect.as_ref(), &stop, &mut |progress| {
        // Ignores the error, because a closed terminal must not end the measurement.
        let _ = std::io::stderr().write_all(format_progress(progress, looks_on).as_bytes());
    })?;
    if outcome == ExperimentOutcome::Stopped {
        print_message("stopped; the same command resumes the experiment");
        return Ok(ExitCode::from(130));
    }
    let code = super::report::report_results(&job.plan, &job.text, &job.out)?;
    if outcome == ExperimentOutcome::TimeOver {
        print_message("the time is over; the same command resumes the experiment");
        return Ok(ExitCode::from(TIME_OVER));
    }
    Ok(code)
}

/// Formats the progress at the start or the end of a run. If standard error is not a terminal, the
/// text is empty at the start of a run.
fn format_progress(progress: &ExperimentProgress, on_terminal: bool) -> String {
    let values = progress.arm.iter();
    let arm: Vec<String> = values
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let left = progress
        .left_s
        .map_or(String::new(), |s| format!(" · {} left", format_duration(s)));
    let (done, all) = (progress.done, progress.all);
    let mut run = format!("round {}", progress.round + 1);
    if !arm.is_empty() {
        run += &format!(" · {}", arm.join(" "));
    }
    // On a terminal, overwrites the line of the run in progress.
    let over = if on_terminal { "\r\x1b[K" } else { "" };
    match &progress.ended {
        None if on_terminal => format!("{over}{done} of {all}{left} · {run} …"),
        None => String::new(),
        Some(record) => {
            let result_text = match &record.discard_reason {
                Some(why) => format!("discarded: {why}"),
                None => format!("{:.1} s", record.took_s),
            };
            format!("{over}{done} of {all}{left} · {run} · {result_text}\n")
        }
    }
}

/// Formats a number of seconds.
fn format_duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// `list`.
pub(super) fn list_experiment_documents(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let folder = argument_value(flags, "folder");
    let entries = std::fs::read_dir(folder).map_err(|error| {
        let cause = net::describe_io_error(&error);
        format!("cannot list {folder}: {cause}")
    })?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml" || e == "json"))
    {
        let text = read_document_text(&path.display().to_string())?;
        match ParsedDocument::parse_and_check(&text) {
            Ok(written) => print_output(format_args!(
                "{:<40} {}\n",
                path.display(),
                written.document.name
            )),
            Err(faults) => {
                let first = faults
                    .first()
                    .map(DocumentFault::to_string)
                    .unwrap_or_default();
                print_output(format_args!("{:<40} {first}\n", path.display()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses a document. Returns its plan and its text as TOML.
pub(super) fn parse_plan(
    path: &str,
    text: &str,
    scale: Option<&str>,
) -> Result<(RunPlan, String), CommandError> {
    let written = ParsedDocument::parse_and_check(text).map_err(|faults| {
        let lines: Vec<String> = faults
            .iter()
            .map(|fault| format!("{path}:{fault}"))
            .collect();
        usage_error(lines.join("\n"))
    })?;
    let plan =
        RunPlan::new(written.document, scale).map_err(|error| usage_error(error.to_string()))?;
    print_ignored_members(path, &written.ignored_members);
    Ok((plan, written.text))
}

pub(super) fn usage_error(what: String) -> CommandError {
    CommandError::Usage(net::config::UsageError(what))
}

pub(super) fn read_document_text(path: &str) -> Result<String, CommandError> {
    let at = |error| format!("cannot read {path}: {}", net::describe_io_error(&error));
    let text = match path {
        "-" => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    };
    text.map_err(|error| usage_error(at(error)))
}

pub(super) fn argument_value<'a>(flags: &'a ArgMatches, name: &str) -> &'a str {
    flags.get_one::<String>(name).map_or("", String::as_str)
}

/// Returns a flag that is set when SIGTERM or Ctrl-C arrives.
fn watch_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    // Installs the handlers before the thread starts, so that an early signal does not kill the
    // process.
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
