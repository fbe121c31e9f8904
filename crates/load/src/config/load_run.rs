//! Runs the commands that generate load.

use super::setting_values::parse_setting;
use super::stdout_printing::print_out;
use super::{CommandError, read_expectations, report_result};
use crate::report::Expectation;
use crate::result::RunResult;
use clap::ArgMatches;
use net::config::{Setting, SettingLayers, UsageError, parse_count};
use std::process::ExitCode;

/// The settings and arguments of a command that generates load.
pub(super) struct LoadCommandInput {
    pub(super) layers: SettingLayers,
    expected: Vec<Expectation>,
    /// The targets or manifests, as the user typed them.
    pub(super) targets: Vec<String>,
}

/// Runs a command that generates load. Reads the settings, calls `generate`, and reports the
/// result. `generate` returns `None` if no run was requested.
pub(super) fn run_and_report(
    settings: &'static [&'static [Setting]],
    flags: &ArgMatches,
    targets: &str,
    generate: impl FnOnce(&LoadCommandInput) -> Result<Option<RunResult>, CommandError>,
) -> Result<ExitCode, CommandError> {
    let layers = SettingLayers::read_settings(settings, &[], flags)?;
    if layers.print {
        print_out(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = net::server::raise_descriptor_limit() {
        eprintln!("cannot raise the limit of open files: {error}");
    }
    let targets = flags.get_many(targets).into_iter().flatten().cloned();
    let input = LoadCommandInput {
        expected: read_expectations(&layers)?,
        targets: targets.collect(),
        layers,
    };
    let Some(mut run) = generate(&input)? else {
        return Ok(ExitCode::SUCCESS);
    };
    run.name = input
        .layers
        .setting_text("name")
        .unwrap_or_default()
        .to_owned();
    report_result(&input.layers, &run, &input.expected)
}

pub(super) fn read_seed(layers: &SettingLayers) -> Result<u64, UsageError> {
    let whole = |text: &str| text.parse().map_err(|_| "expected a whole number");
    Ok(parse_setting(layers, "seed", whole)?.unwrap_or(1))
}

/// Returns the number of generator threads. The default is one thread per core.
pub(super) fn read_threads(layers: &SettingLayers) -> Result<usize, UsageError> {
    let wanted = parse_setting(layers, "threads", parse_count)?.filter(|threads| *threads > 0);
    Ok(wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)))
}
