//! `headwater lab convert`.

use super::command_error::CommandError;
use super::experiment::{argument_value, read_document_text, usage_error};
use super::output::{print_message, print_output};
use crate::document_format::{ParsedDocument, parse_workflow};
use crate::nbmp::to_workflow;
use clap::{Arg, ArgMatches, Command};
use std::path::Path;
use std::process::ExitCode;

const AFTER: &str = "\
Converts TOML to a workflow description of NBMP (ISO/IEC 23090-8), and JSON to TOML. Only comments
are lost: keys without an NBMP field become configuration parameters, and members without a TOML key
are stored in the table [nbmp].

Exit status: 0 success; 2 the document is invalid.

Examples:
  headwater lab convert experiments/congestion.toml -o congestion.wdd.json
  headwater lab convert congestion.wdd.json";

/// Defines the command.
pub(super) fn define_command() -> Command {
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .help("Output file [default: standard output]");
    let file = Arg::new("file").required(true).value_name("FILE");
    Command::new("convert")
        .about("Convert an experiment from TOML to an NBMP workflow description, or back")
        .after_help(AFTER)
        .args([file.help("The document"), output])
}

/// Converts a document; warns on standard error if the result cannot be run.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let path = argument_value(flags, "file");
    let text = read_document_text(path)?;
    let converted = match text.trim_start().starts_with('{') {
        true => to_toml(path, &text)?,
        false => to_json(path, &text)?,
    };
    if let Err(faults) = ParsedDocument::parse_and_check(&converted) {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        print_message(format_args!(
            "converted, but the result cannot be run: {first}"
        ));
    }
    match flags.get_one::<String>("output") {
        None => print_output(converted),
        Some(output) => std::fs::write(Path::new(output), converted)
            .map_err(|error| CommandError::Failed(format!("{output}: {error}")))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_toml(path: &str, text: &str) -> Result<String, CommandError> {
    let workflow = parse_workflow(text).map_err(|offences| {
        let lines: Vec<String> = offences.iter().map(|o| format!("{path}:{o}")).collect();
        usage_error(lines.join("\n"))
    })?;
    let table = crate::nbmp::to_experiment(&workflow);
    toml::to_string_pretty(&table).map_err(|error| CommandError::Failed(error.to_string()))
}

fn to_json(path: &str, text: &str) -> Result<String, CommandError> {
    let table = toml::from_str(text).map_err(|error| usage_error(format!("{path}: {error}")))?;
    let json = serde_json::to_string_pretty(&to_workflow(&table));
    Ok(json.map_err(|error| error.to_string())? + "\n")
}
