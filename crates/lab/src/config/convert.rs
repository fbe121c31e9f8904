//! `headwater lab convert`.

use super::experiment::{read, text_of, wrong};
use super::{Stop, say, tell};
use crate::experiment::{Written, workflow};
use crate::nbmp::to_workflow;
use clap::{Arg, ArgMatches, Command};
use std::path::Path;
use std::process::ExitCode;

const AFTER: &str = "\
TOML becomes a workflow description of NBMP (ISO/IEC 23090-8), and JSON becomes TOML; nothing that
either says is lost (comments are). What NBMP has no field for stands in configuration parameters,
what TOML has no word for in the table [nbmp].

Exit status: 0; 2 if the document is wrong.

Examples:
  headwater lab convert experiments/congestion.toml -o congestion.wdd.json
  headwater lab convert congestion.wdd.json";

/// The words.
pub(super) fn command() -> Command {
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .help("Where it goes [default: standard output]");
    let file = Arg::new("file").required(true).value_name("FILE");
    Command::new("convert")
        .about("Turn an experiment from TOML into an NBMP workflow description, or back")
        .after_help(AFTER)
        .args([file.help("The document"), output])
}

/// Converts, and says on standard error what keeps the result from being run.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let path = text_of(flags, "file");
    let text = read(path)?;
    let converted = match text.trim_start().starts_with('{') {
        true => to_toml(path, &text)?,
        false => to_json(path, &text)?,
    };
    if let Err(faults) = Written::read(&converted) {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        tell(format_args!(
            "converted, but it is no experiment that can be run: {first}"
        ));
    }
    match flags.get_one::<String>("output") {
        None => say(converted),
        Some(output) => std::fs::write(Path::new(output), converted)
            .map_err(|error| Stop::Failed(format!("{output}: {error}")))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_toml(path: &str, text: &str) -> Result<String, Stop> {
    let workflow = workflow(text).map_err(|offences| {
        let lines: Vec<String> = offences.iter().map(|o| format!("{path}:{o}")).collect();
        wrong(lines.join("\n"))
    })?;
    let table = crate::nbmp::to_experiment(&workflow);
    toml::to_string_pretty(&table).map_err(|error| Stop::Failed(error.to_string()))
}

fn to_json(path: &str, text: &str) -> Result<String, Stop> {
    let table = toml::from_str(text).map_err(|error| wrong(format!("{path}: {error}")))?;
    let json = serde_json::to_string_pretty(&to_workflow(&table));
    Ok(json.map_err(|error| error.to_string())? + "\n")
}
