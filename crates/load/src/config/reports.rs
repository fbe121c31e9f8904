//! `headwater load report` and `headwater load compare`.

use super::{OUTPUTS, Stop, deliver, expectations, layers, say};
use crate::report::{compare as compared, html, read};
use crate::result::Run;
use clap::{Arg, ArgMatches, Command};
use net::config::{Knob, Wrong, flags};
use std::path::Path;
use std::process::ExitCode;

const REPORT: &[&[Knob]] = &[OUTPUTS];

const AFTER_REPORT: &str = "\
A FILE is what a run left behind: --json (all of it), --records (all but the generator's own
lateness), or --hdr (distributions alone). Several are merged: histograms are added, so that
percentiles are those of all requests together.

Examples:
  headwater load report run.json
  headwater load report generator-*.json --html all.html --expect 'p99.9 < 200ms'";

const AFTER_COMPARE: &str = "\
Runs of A and B are paired in order: make them in turn (A B, B A, A B …), so that what changes on
the machine meets both. At least three pairs give an interval; five or more a useful one.

Example:
  headwater load compare --a nginx-1.json --a nginx-2.json --a nginx-3.json \\
      --b ours-1.json --b ours-2.json --b ours-3.json --html compare.html";

pub(super) fn report() -> Command {
    Command::new("report")
        .about("Report on runs that are over, any number of them merged")
        .after_help(AFTER_REPORT)
        .arg(files("file", "FILE", "What runs left behind"))
        .args(flags(REPORT))
}

pub(super) fn compare() -> Command {
    let side = |name: &'static str, help| {
        Arg::new(name)
            .long(name)
            .value_name("FILE")
            .action(clap::ArgAction::Append)
            .required(true)
            .num_args(1..)
            .help(help)
    };
    let html = Arg::new("html").long("html").value_name("FILE");
    let name = |id| Arg::new(id).long(id).value_name("TEXT");
    Command::new("compare")
        .about("Compare two arrangements by interleaved runs of each")
        .after_help(AFTER_COMPARE)
        .arg(side("a", "Runs of the first, in the order they were made"))
        .arg(side(
            "b",
            "Runs of the second, each made beside its partner",
        ))
        .arg(name("name-a").help("What the first is called"))
        .arg(name("name-b").help("What the second is called"))
        .arg(html.help("Write both as a report with plots"))
}

fn files(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    let arg = Arg::new(id).value_name(value).num_args(1..).help(help);
    arg.required_unless_present(net::config::PRINT)
}

fn all(flags: &ArgMatches, id: &str) -> Result<Vec<Run>, Stop> {
    let paths = flags.get_many::<String>(id).into_iter().flatten();
    let runs: Result<Vec<Run>, String> = paths.map(|path| read::run(Path::new(path))).collect();
    Ok(runs?)
}

pub(super) fn run_report(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let layers = layers(REPORT, flags)?;
    if layers.print {
        say(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    for name in ["hdr", "records"] {
        if layers.one(name).is_some() {
            return Err(Wrong(format!("--{name} is written by a run, not by a report")).into());
        }
    }
    let expected = expectations(&layers)?;
    let mut merged = merge(all(flags, "file")?);
    if let Some(name) = layers.one("name") {
        merged.name = name.to_owned();
    }
    deliver(&layers, &merged, &expected)
}

fn merge(runs: Vec<Run>) -> Run {
    let mut runs = runs.into_iter();
    let mut merged = runs.next().unwrap_or_default();
    runs.for_each(|run| merged.add(&run));
    merged
}

pub(super) fn run_compare(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let (a, b) = (all(flags, "a")?, all(flags, "b")?);
    if a.len() != b.len() {
        let what = format!(
            "{} runs of A and {} of B: runs are compared in pairs",
            a.len(),
            b.len()
        );
        return Err(Wrong(what).into());
    }
    let name = |id, default: &str| {
        flags
            .get_one::<String>(id)
            .map_or(default.to_owned(), String::clone)
    };
    let names = (name("name-a", "A"), name("name-b", "B"));
    say(compared::summary(&a, &b, (&names.0, &names.1), 1));
    if let Some(path) = flags.get_one::<String>("html") {
        let (mut a, mut b) = (merge(a), merge(b));
        (a.name, b.name) = names;
        std::fs::write(path, html::page(&[&a, &b])).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
