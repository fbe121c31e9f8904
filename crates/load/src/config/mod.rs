//! The command line of `headwater load`.

mod client_options;
mod command_error;
mod metrics_port;
mod output_options;
mod players_command;
mod rate_command;
mod recorded_targets;
mod report_commands;
mod setting_values;
mod stop_signal;

use crate::report::Expectation;
use crate::result::RunResult;
use clap::{ArgMatches, Command};
use net::config::{Setting, SettingLayers, SettingSources, UsageError, count};
use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

pub use client_options::{CLIENT, read_client_settings};
pub use command_error::CommandError;
use setting_values::parse_setting;

pub use output_options::{OUTPUTS, SummaryOutput, open_outputs, read_expectations, report_result};

/// The command line of `headwater load`.
pub fn command() -> Command {
    Command::new("load")
        .about("Generate load with request rates or emulated viewers, and measure any origin")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(rate_command::command())
        .subcommand(players_command::command())
        .subcommand(report_commands::report_command())
        .subcommand(report_commands::compare_command())
}

/// Runs the subcommand. Exit codes: 0 for success, 1 if a run or an expectation failed, 2 for wrong
/// usage.
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

/// Prints to standard output. Ignores errors: the reader may have closed the pipe.
fn print_out(text: impl Display) {
    let _ = write!(std::io::stdout().lock(), "{text}");
}

/// Reads a command's settings from its flags, the environment and a file.
///
/// # Errors
/// Same as [`SettingLayers::new`].
pub fn read_layers(
    settings: &'static [&'static [Setting]],
    flags: &ArgMatches,
) -> Result<SettingLayers, UsageError> {
    SettingLayers::new(&SettingSources {
        settings,
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}

/// The settings and arguments of a command that generates load.
struct RunInput {
    layers: SettingLayers,
    expected: Vec<Expectation>,
    /// The targets or manifests, as typed.
    targets: Vec<String>,
}

/// Runs a command that generates load: reads its settings, calls `generate`, and reports the result.
/// `generate` returns none if no run was requested.
fn run_and_report(
    settings: &'static [&'static [Setting]],
    flags: &ArgMatches,
    targets: &str,
    generate: impl FnOnce(&RunInput) -> Result<Option<RunResult>, CommandError>,
) -> Result<ExitCode, CommandError> {
    let layers = read_layers(settings, flags)?;
    if layers.print {
        print_out(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    let targets = flags.get_many(targets).into_iter().flatten().cloned();
    let input = RunInput {
        expected: read_expectations(&layers)?,
        targets: targets.collect(),
        layers,
    };
    let Some(mut run) = generate(&input)? else {
        return Ok(ExitCode::SUCCESS);
    };
    run.name = input.layers.one("name").unwrap_or_default().to_owned();
    report_result(&input.layers, &run, &input.expected)
}

fn read_seed(layers: &SettingLayers) -> Result<u64, UsageError> {
    let whole = |text: &str| text.parse().map_err(|_| "expected a whole number");
    Ok(parse_setting(layers, "seed", whole)?.unwrap_or(1))
}

/// Returns the number of generator threads; by default one per core.
fn read_threads(layers: &SettingLayers) -> Result<usize, UsageError> {
    let wanted = parse_setting(layers, "threads", count)?.filter(|threads| *threads > 0);
    Ok(wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)))
}
