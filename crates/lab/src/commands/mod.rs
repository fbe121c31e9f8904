//! The commands of `headwater lab`.

#[cfg(feature = "nats")]
mod agent;
mod command_error;
#[cfg(feature = "nbmp")]
mod convert;
mod exec;
mod experiment;
mod findings;
mod link;
mod link_options;
mod link_session_events;
mod missing_feature;
mod nats_settings;
mod output;
mod report;
#[cfg(feature = "nbmp")]
mod serve;

#[cfg(not(all(feature = "nats", feature = "nbmp")))]
pub(crate) use missing_feature::missing_feature_message;

#[cfg(not(feature = "nats"))]
use missing_feature::lacks_nats as agent;
#[cfg(not(feature = "nbmp"))]
use missing_feature::{lacks_convert as convert, lacks_serve as serve};

use crate::link::{CleanupGuard, run_cleanup_process};
use clap::{ArgMatches, Command};
use command_error::CommandError;
use output::print_message;
use std::process::ExitCode;

/// Name of the hidden command that runs this program as the guard process of [`CleanupGuard`].
const GUARD: &str = CleanupGuard::ARGUMENTS[1];

const AFTER: &str = "\
An experiment is a document. It describes media sources, functions, links and clients, and a sweep of
variables. Each combination of their values is an arm. The arms run in interleaved rounds, and every
run is recorded. The report compares the arms.

Examples:
  headwater lab run experiments/congestion.toml --out results/congestion --scale small
  headwater lab compare results/monday results/tuesday --html compared.html
  headwater lab link --rate 20mbit --delay 100ms -- ping -c 3 10.77.0.2
  headwater lab serve --out results";

/// Defines `headwater lab`.
pub fn define_lab_command() -> Command {
    Command::new("lab")
        .about("Run experiments described in TOML or NBMP files, report and compare them; emulate links")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(experiment::define_commands())
        .subcommands(report::define_commands())
        .subcommand(findings::define_command())
        .subcommand(agent::define_command())
        .subcommand(link::define_command())
        .subcommand(exec::define_command())
        .subcommand(convert::define_command())
        .subcommand(serve::define_command())
        .subcommand(Command::new(GUARD).hide(true))
}

/// Runs a command. The exit status is 0 for success, 1 for failure, 2 for wrong usage, and 3 if
/// this machine lacks a capability. The help of some commands documents other values. `lab link`
/// returns the status of the command that ran over the link.
pub fn run_lab_command(flags: &ArgMatches) -> ExitCode {
    let result = match flags.subcommand() {
        Some(("run", flags)) => experiment::run_experiment(flags),
        Some(("validate", flags)) => experiment::run_validate(flags),
        Some(("list", flags)) => experiment::list_experiment_documents(flags),
        Some(("report", flags)) => report::run_report_command(flags),
        Some(("compare", flags)) => report::run_compare(flags),
        Some(("index", flags)) => report::run_index_command(flags),
        Some(("findings", flags)) => findings::run_command(flags),
        Some(("agent", flags)) => agent::run_command(flags),
        Some(("link", flags)) => link::run_command(flags),
        Some(("exec", flags)) => exec::run_command(flags),
        Some(("convert", flags)) => convert::run_command(flags),
        Some(("serve", flags)) => serve::run_command(flags),
        Some((GUARD, _)) => {
            run_cleanup_process();
            Ok(ExitCode::SUCCESS)
        }
        _ => return ExitCode::from(2),
    };
    let (status, what) = match result {
        Ok(code) => return code,
        Err(CommandError::Usage(wrong)) => (2, wrong.to_string()),
        Err(CommandError::Failed(what)) => (1, what),
        Err(CommandError::Unable(what)) => (3, what),
    };
    print_message(what);
    ExitCode::from(status)
}
