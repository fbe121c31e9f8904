//! Where results go, and what they are held to.

use super::{Stop, say};
use crate::report::{Expectation, html, text};
use crate::result::{HdrLog, Outputs, Records, Run};
use net::config::{Knob, Layers, Wrong};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

/// The knobs of every command that ends with a result.
pub const OUTPUTS: &[Knob] = &[
    Knob::new(
        "json",
        "FILE",
        "",
        "Write the whole result as JSON; - is standard output",
    ),
    Knob::new(
        "hdr",
        "FILE",
        "",
        "Write the HDR interval log: every second, step and kind",
    ),
    Knob::new(
        "html",
        "FILE",
        "",
        "Write a report with plots: one file that needs no other",
    ),
    Knob::new(
        "records",
        "FILE",
        "",
        "Write a line for each request; compressed if FILE ends in .zst or .gz",
    ),
    Knob::new(
        "expect",
        "EXPR",
        "",
        "Fail unless this holds, such as 'p99 < 50ms' or 'errors = 0'",
    )
    .list(),
    Knob::new("name", "TEXT", "", "What the run is called in reports"),
];

/// What was expected.
///
/// # Errors
/// The expectation that means nothing.
pub fn expectations(layers: &Layers) -> Result<Vec<Expectation>, Wrong> {
    let parse = |text: &String| {
        let wrong = |why| Wrong(format!("expect = {text:?}: {why}"));
        Expectation::parse(text).map_err(wrong)
    };
    layers.list("expect").iter().map(parse).collect()
}

/// Opens the files that are written while a run goes on.
///
/// # Errors
/// The file that cannot be written.
pub fn open(layers: &Layers) -> Result<Outputs, Stop> {
    let wrong = |path: &Path, error| Stop::Failed(format!("{}: {error}", path.display()));
    let mut outputs = Outputs::default();
    if let Some(path) = layers.path("hdr") {
        let file = File::create(&path).map_err(|error| wrong(&path, error))?;
        outputs.hdr = Some(HdrLog::new(BufWriter::new(file), SystemTime::now()));
    }
    if let Some(path) = layers.path("records") {
        outputs.records = Some(Records::create(&path).map_err(|error| wrong(&path, error))?);
    }
    Ok(outputs)
}

/// Whether the text summary goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// To people.
    Text,
    /// The JSON takes its place.
    Json,
}

/// Says how a run went: text, files, expectations.
///
/// # Errors
/// The file that cannot be written.
pub fn deliver(layers: &Layers, run: &Run, expected: &[Expectation]) -> Result<ExitCode, Stop> {
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes)
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))
    };
    let json = layers.path("json");
    let said = match &json {
        Some(path) if path.as_os_str() == "-" => Said::Json,
        _ => Said::Text,
    };
    if let Some(path) = json {
        let text = serde_json::to_string(&crate::report::Document::new(run, expected));
        let text = text.map_err(|error| Stop::Failed(error.to_string()))? + "\n";
        match said {
            Said::Json => say(text),
            Said::Text => write(&path, text.as_bytes())?,
        }
    }
    if let Some(path) = layers.path("html") {
        write(&path, html::page(&[run]).as_bytes())?;
    }
    if said == Said::Text {
        say(text::summary(run));
    }
    let mut failed = false;
    for expectation in expected {
        let verdict = expectation.judge(run);
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
