//! `headwater lab`: its words, and what they start.

mod agent;
mod convert;
mod events;
mod exec;
mod experiment;
mod link;
mod nats;
mod report;
pub(crate) mod serve;
mod shape;

use crate::link::{Guard, stand};
use clap::{ArgMatches, Command};
use net::config::{Knob, Layers, Sources, Wrong};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// The hidden word that this program starts itself with.
const GUARD: &str = Guard::WORDS[1];

const AFTER: &str = "\
An experiment is a document: media source, functions, links and clients, in arms that a sweep spans.
Its runs are interleaved in rounds, written down, and told as one page.

Examples:
  headwater lab run experiments/congestion.toml --out results/congestion --scale small
  headwater lab compare results/monday results/tuesday --html compared.html
  headwater lab link --rate 20mbit --delay 100ms -- ping -c 3 10.77.0.2
  headwater lab serve --out results";

/// The words of `headwater lab`.
pub fn command() -> Command {
    Command::new("lab")
        .about("Run experiments after documents, compare and report them; emulate links; serve workflows")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(experiment::commands())
        .subcommands(report::commands())
        .subcommand(agent::command())
        .subcommand(link::command())
        .subcommand(exec::command())
        .subcommand(convert::command())
        .subcommand(serve::command())
        .subcommand(Command::new(GUARD).hide(true))
}

/// To standard output, at once. Whoever reads it may have seen enough: a closed pipe is no failure.
fn say(what: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{what}").and_then(|()| out.flush());
}

/// To standard error. That nobody reads it, or it is closed, is no failure either.
fn tell(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "headwater lab: {what}");
}

/// Runs what was asked for. Exit status: 0 all well, 1 failed, 2 wrong usage, 3 this machine makes
/// no links; that of the command, where one was run over a link.
pub fn run(flags: &ArgMatches) -> ExitCode {
    let result = match flags.subcommand() {
        Some(("run", flags)) => experiment::run(flags),
        Some(("validate", flags)) => experiment::validate(flags),
        Some(("list", flags)) => experiment::list(flags),
        Some(("report", flags)) => report::report(flags),
        Some(("compare", flags)) => report::compare(flags),
        Some(("index", flags)) => report::index(flags),
        Some(("agent", flags)) => agent::run(flags),
        Some(("link", flags)) => link::run(flags),
        Some(("exec", flags)) => exec::run(flags),
        Some(("convert", flags)) => convert::run(flags),
        Some(("serve", flags)) => serve::run(flags),
        Some((GUARD, _)) => {
            stand();
            Ok(ExitCode::SUCCESS)
        }
        _ => return ExitCode::from(2),
    };
    let (status, what) = match result {
        Ok(code) => return code,
        Err(Stop::Usage(wrong)) => (2, wrong.to_string()),
        Err(Stop::Failed(what)) => (1, what),
        Err(Stop::Unable(what)) => (3, what),
    };
    tell(what);
    ExitCode::from(status)
}

/// Why a command ends before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Wrong usage: exit status 2.
    Usage(Wrong),
    /// It could not be done: exit status 1.
    Failed(String),
    /// This machine has not what it takes: exit status 3.
    Unable(String),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Usage(wrong)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Failed(what)
    }
}

/// All settings of a command, from its flags, the environment and a file.
fn layers(knobs: &'static [&'static [Knob]], flags: &ArgMatches) -> Result<Layers, Wrong> {
    Layers::new(&Sources {
        knobs,
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}
