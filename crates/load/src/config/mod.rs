//! `headwater load`: its words, and what they start.

mod client;
mod outputs;
mod players;
mod rate;
mod reports;

use clap::{ArgMatches, Command};
use net::config::{Knob, Layers, Sources, Wrong};
use std::process::ExitCode;

pub use client::{CLIENT, settings};
pub use outputs::{OUTPUTS, Said, deliver, expectations, open};

/// The words of `headwater load`.
pub fn command() -> Command {
    Command::new("load")
        .about("Load any origin with request rates, and say honestly how it answered")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(rate::command())
        .subcommand(players::command())
        .subcommand(reports::report())
        .subcommand(reports::compare())
}

/// Runs what was asked for. Exit status: 0 all well, 1 a run or an expectation failed, 2 wrong usage.
pub fn run(flags: &ArgMatches) -> ExitCode {
    let result = match flags.subcommand() {
        Some(("rate", flags)) => rate::run(flags),
        Some(("players", flags)) => players::run(flags),
        Some(("report", flags)) => reports::run_report(flags),
        Some(("compare", flags)) => reports::run_compare(flags),
        _ => return ExitCode::from(2),
    };
    match result {
        Ok(code) => code,
        Err(Stop::Usage(wrong)) => said(2, &wrong.to_string()),
        Err(Stop::Failed(what)) => said(1, &what),
    }
}

fn said(code: u8, what: &str) -> ExitCode {
    eprintln!("headwater load: {what}");
    ExitCode::from(code)
}

/// Why a command ends before its end.
#[derive(Debug)]
pub enum Stop {
    /// Wrong usage: exit status 2.
    Usage(Wrong),
    /// It could not be done: exit status 1.
    Failed(String),
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
///
/// # Errors
/// As [`Layers::new`].
pub fn layers(knobs: &'static [&'static [Knob]], flags: &ArgMatches) -> Result<Layers, Wrong> {
    Layers::new(&Sources {
        knobs,
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}

/// `yes` or `no`.
fn yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("it is yes or no".into()),
    }
}
