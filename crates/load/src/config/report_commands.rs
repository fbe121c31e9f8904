//! `headwater load report` and `headwater load compare`.

use super::output_options::write_output;
use super::stdout_printing::print_out;
use super::{CommandError, OUTPUTS, read_expectations, report_result};
use crate::report::paired_comparison::RunComparison;
use crate::report::{html_report, result_files};
use crate::result::RunResult;
use clap::{Arg, ArgMatches, Command};
use net::config::{Setting, SettingLayers, UsageError, build_command_args};
use std::path::Path;
use std::process::ExitCode;

const REPORT: &[&[Setting]] = &[OUTPUTS];

const AFTER_REPORT: &str = "\
A FILE is the output of --json, --records or --hdr of a run. --json contains everything, --records
everything except the generator's lateness, and --hdr only distributions. Several files are merged:
histograms are added, so percentiles cover all requests. - is standard input.

Examples:
  headwater load report run.json
  headwater load report generator-*.json --html all.html --expect 'p99.9 < 200ms'";

const AFTER_COMPARE: &str = "\
Runs of A and B are paired in order. Alternate them (A B, B A, A B ...), so that changes on the
machine affect both. A 95 % interval needs at least six pairs; with fewer, the range of
the pairs is reported. - is standard input for --a and --b, and standard output for --html.

Example:
  headwater load compare --name-a nginx --a nginx-*.json --name-b headwater --b ours-*.json \\
      --html compare.html";

pub(super) fn define_report_command() -> Command {
    Command::new("report")
        .about("Report on one finished run, or on several merged")
        .after_help(AFTER_REPORT)
        .arg(files_argument("file", "FILE", "Result files of runs"))
        .args(build_command_args(REPORT))
}

pub(super) fn compare_command() -> Command {
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
        .about("Compare two configurations by interleaved runs")
        .after_help(AFTER_COMPARE)
        .arg(side("a", "Runs of the first configuration, in order"))
        .arg(side("b", "Runs of the second configuration, in order"))
        .arg(name("name-a").help("Name of the first configuration"))
        .arg(name("name-b").help("Name of the second configuration"))
        .arg(html.help("Write an HTML report of both with plots; - is standard output"))
}

fn files_argument(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    let arg = Arg::new(id).value_name(value).num_args(1..).help(help);
    arg.required_unless_present(net::config::PRINT)
}

fn read_results(flags: &ArgMatches, id: &str) -> Result<Vec<RunResult>, CommandError> {
    let paths = flags.get_many::<String>(id).into_iter().flatten();
    let runs = paths.map(|path| Ok(result_files::read_result(Path::new(path))?));
    runs.collect()
}

pub(super) fn run_report(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let layers = SettingLayers::read_settings(REPORT, &[], flags)?;
    if layers.print {
        print_out(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    for name in ["hdr", "records"] {
        if layers.setting_text(name).is_some() {
            return Err(UsageError(format!(
                "--{name} is not available here; use it with `load rate` or `load players`"
            ))
            .into());
        }
    }
    let expected = read_expectations(&layers)?;
    let mut merged = RunResult::merge_runs(read_results(flags, "file")?);
    if let Some(name) = layers.setting_text("name") {
        merged.name = name.to_owned();
    }
    report_result(&layers, &merged, &expected)
}

pub(super) fn run_compare(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let (a, b) = (read_results(flags, "a")?, read_results(flags, "b")?);
    if a.len() != b.len() {
        let what = format!(
            "{} runs of A and {} of B; give the same number, because runs are compared in pairs",
            a.len(),
            b.len()
        );
        return Err(UsageError(what).into());
    }
    let name = |id, default: &str| {
        flags
            .get_one::<String>(id)
            .map_or(default.to_owned(), String::clone)
    };
    let names = (name("name-a", "A"), name("name-b", "B"));
    let compared = RunComparison::new(a, b, names);
    let html = flags.get_one::<String>("html");
    if html.is_none_or(|path| path != "-") {
        print_out(compared.format_summary());
    }
    if let Some(path) = html {
        write_output(
            Path::new(path),
            html_report::render_comparison_page(&compared),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
