//! Output files of a run, and its expectations.

use super::{CommandError, print_out};
use crate::report::{Expectation, ExpectationError, html_report, text_summary};
use crate::result::{HdrLogWriter, RecordWriter, RunOutputs, RunResult};
use net::config::{Setting, SettingLayers, UsageError};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

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
        "Write an HDR interval log by second, step and kind",
    ),
    Setting::new(
        "html",
        "FILE",
        "",
        "Write a self-contained HTML report with plots",
    ),
    Setting::new(
        "records",
        "FILE",
        "",
        "Write one line per request; compressed if FILE ends in .zst or .gz",
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
/// The invalid expectation.
pub fn read_expectations(layers: &SettingLayers) -> Result<Vec<Expectation>, UsageError> {
    let parse = |text: &String| {
        let wrong = |why: ExpectationError| UsageError(format!("expect = {text:?}: {why}"));
        Expectation::parse(text).map_err(wrong)
    };
    layers.list("expect").iter().map(parse).collect()
}

/// Opens the files that are written during a run.
///
/// # Errors
/// The file that cannot be written.
pub fn open_outputs(layers: &SettingLayers) -> Result<RunOutputs, CommandError> {
    let wrong = |path: &Path, error| CommandError::WriteFile(path.display().to_string(), error);
    let mut outputs = RunOutputs::default();
    if let Some(path) = layers.path("hdr") {
        let file = File::create(&path).map_err(|error| wrong(&path, error))?;
        outputs.hdr = Some(HdrLogWriter::new(BufWriter::new(file), SystemTime::now()));
    }
    if let Some(path) = layers.path("records") {
        outputs.records = Some(RecordWriter::create(&path).map_err(|error| wrong(&path, error))?);
    }
    Ok(outputs)
}

/// The content of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryOutput {
    /// The text summary.
    Text,
    /// The JSON result instead of the summary.
    Json,
}

/// Reports a run's result: text, files and expectations.
///
/// # Errors
/// The file that cannot be written.
pub fn report_result(
    layers: &SettingLayers,
    run: &RunResult,
    expected: &[Expectation],
) -> Result<ExitCode, CommandError> {
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes)
            .map_err(|error| CommandError::WriteFile(path.display().to_string(), error))
    };
    let json = layers.path("json");
    let output = match &json {
        Some(path) if path.as_os_str() == "-" => SummaryOutput::Json,
        _ => SummaryOutput::Text,
    };
    if let Some(path) = json {
        let text = serde_json::to_string(&crate::report::ResultDocument::new(run, expected));
        let text = text? + "\n";
        match output {
            SummaryOutput::Json => print_out(text),
            SummaryOutput::Text => write(&path, text.as_bytes())?,
        }
    }
    if let Some(path) = layers.path("html") {
        write(&path, html_report::render_page(&[run]).as_bytes())?;
    }
    if output == SummaryOutput::Text {
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
