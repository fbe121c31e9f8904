//! Output files and expectations of a run.

use super::CommandError;
use super::stdout_printing::print_out;
use crate::report::{Expectation, ExpectationError, html_report, text_summary};
use crate::result::{
    HdrLogWriter, RecordWriter, RunFacts, RunOutputs, RunResult, create_file_or_stdout,
};
use net::config::{Setting, SettingLayers, UsageError};
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

/// Settings of every command that produces a result.
pub const OUTPUTS: &[Setting] = &[
    Setting::new(
        "json",
        "FILE",
        "",
        "Write the result as JSON; - is standard output",
    ),
    Setting::new(
        "hdr",
        "FILE",
        "",
        "Write an HDR interval log by second, step and kind; - is standard output",
    ),
    Setting::new(
        "html",
        "FILE",
        "",
        "Write a self-contained HTML report with plots; - is standard output",
    ),
    Setting::new(
        "records",
        "FILE",
        "",
        "Write one line per request, compressed for FILE.zst and .gz; - is standard output",
    ),
    Setting::new(
        "expect",
        "EXPR",
        "",
        "Exit with 1 unless this holds, such as 'p99 < 50ms' or 'errors = 0'",
    )
    .as_list(),
    Setting::new("name", "TEXT", "", "Name of the run in reports"),
];

/// Parses the expectations.
///
/// # Errors
/// An expectation is invalid. The error contains the expectation.
pub fn read_expectations(layers: &SettingLayers) -> Result<Vec<Expectation>, UsageError> {
    let parse = |text: &String| {
        let wrong = |why: ExpectationError| UsageError(format!("expect = {text:?}: {why}"));
        Expectation::parse_expectation(text).map_err(wrong)
    };
    layers.setting_texts("expect").iter().map(parse).collect()
}

/// Opens the files that are written during a run.
///
/// # Errors
/// A file cannot be opened, or several output files are named `-`.
pub fn open_outputs(layers: &SettingLayers, facts: RunFacts) -> Result<RunOutputs, CommandError> {
    StdoutContent::from_settings(layers)?;
    let wrong = |path: &Path, error| CommandError::WriteFile(path.display().to_string(), error);
    let mut outputs = RunOutputs::default();
    if let Some(path) = layers.setting_path("hdr") {
        let file = create_file_or_stdout(&path).map_err(|error| wrong(&path, error))?;
        outputs.hdr = Some(HdrLogWriter::new(BufWriter::new(file), facts));
    }
    if let Some(path) = layers.setting_path("records") {
        outputs.records = Some(RecordWriter::create(&path).map_err(|error| wrong(&path, error))?);
    }
    Ok(outputs)
}

/// The content of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdoutContent {
    /// The text summary.
    Text,
    /// The output file that the user named `-`.
    File,
}

impl StdoutContent {
    /// Returns the content of standard output that the settings select.
    ///
    /// # Errors
    /// Several output files are named `-`.
    pub fn from_settings(layers: &SettingLayers) -> Result<StdoutContent, UsageError> {
        let named = ["json", "hdr", "html", "records"]
            .into_iter()
            .filter(|name| layers.setting_text(name) == Some("-"));
        match named.collect::<Vec<_>>().as_slice() {
            [] => Ok(StdoutContent::Text),
            [_] => Ok(StdoutContent::File),
            [first, second, ..] => Err(UsageError(format!(
                "--{first} and --{second} cannot both be standard output; name a file for one"
            ))),
        }
    }
}

/// Writes text to a file, or to standard output if the path is `-`.
pub(super) fn write_output(path: &Path, text: String) -> Result<(), CommandError> {
    if path.as_os_str() == "-" {
        print_out(text);
        return Ok(());
    }
    std::fs::write(path, text)
        .map_err(|error| CommandError::WriteFile(path.display().to_string(), error))
}

/// Reports the result of a run as text and files, and evaluates the expectations.
///
/// # Errors
/// The result cannot be encoded, a file cannot be written, or several output files are named `-`.
pub fn report_result(
    layers: &SettingLayers,
    run: &RunResult,
    expected: &[Expectation],
) -> Result<ExitCode, CommandError> {
    let output = StdoutContent::from_settings(layers)?;
    if let Some(path) = layers.setting_path("json") {
        let text = serde_json::to_string(&crate::report::ResultDocument::new(run, expected))?;
        write_output(&path, text + "\n")?;
    }
    if let Some(path) = layers.setting_path("html") {
        write_output(&path, html_report::render_run_page(run))?;
    }
    if output == StdoutContent::Text {
        print_out(text_summary::format_summary(run));
    }
    let mut failed = false;
    for expectation in expected {
        let verdict = expectation.evaluate(run);
        failed |= !verdict.holds;
        let mark = if verdict.holds { "holds" } else { "FAILS" };
        eprintln!("{mark}: {expectation} (measured: {})", verdict.found);
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
