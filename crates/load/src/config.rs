//! `headwater load`: its words, and what they start.

use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The words of `headwater load`.
pub fn command() -> Command {
    Command::new("load")
        .about("Load any origin with request rates, and say honestly how it answered")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Runs what was asked for. Exit status: 0 all well, 1 a run or an expectation failed, 2 wrong usage.
pub fn run(_flags: &ArgMatches) -> ExitCode {
    ExitCode::from(2)
}
