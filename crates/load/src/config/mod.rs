//! The command line of `headwater load`.

mod client_options;
mod command_error;
mod load_run;
mod metrics_port;
mod output_options;
mod players_command;
mod rate_command;
mod recorded_targets;
mod report_commands;
mod setting_values;
mod stdout_printing;
mod stop_signal;

use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub use client_options::{CLIENT, read_client_settings};
pub use command_error::CommandError;

pub use output_options::{OUTPUTS, StdoutContent, open_outputs, read_expectations, report_result};

/// The command line of `headwater load`.
pub fn command() -> Command {
    Command::new("load")
        .about("Generate load with request rates or emulated viewers, and measure any origin")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(rate_command::command())
        .subcommand(players_command::command())
        .subcommand(report_commands::define_report_command())
        .subcommand(report_commands::compare_command())
}

/// Runs the subcommand. The exit code is 0 for success, 1 if a run or an expectation failed, and 2
/// for wrong usage.
pub fn run(flags: &ArgMatches) -> ExitCode {
    let result = match flags.subcommand() {
        Some(("rate", flags)) => rate_command::run_command(flags),
        Some(("players", flags)) => players_command::run_command(flags),
        Some(("report", flags)) => report_commands::run_report(flags),
        Some(("compare", flags)) => report_commands::run_compare(flags),
        _ => return ExitCode::from(2),
    };
    result.unwrap_or_else(|error| {
        eprintln!("headwater load: {error}");
        error.exit_code()
    })
}
