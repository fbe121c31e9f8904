//! `headwater lab findings`.

use super::command_error::CommandError;
use super::experiment::argument_value;
use super::output::print_output;
use crate::experiment::FileError;
use crate::report::Findings;
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = "\
Judges each claim of the catalogue by the bounds of the present experiment documents and the raw records
(runs.jsonl or runs.jsonl.zst) of the result folders. The name of a folder is the id of its run in the
catalogue. Records that precede a change of the bounds do not
count; a claim without other records is not measured.

Example:
  headwater lab findings docs/results/* --out docs/findings.md";

/// Defines the command.
pub(super) fn define_command() -> Command {
    Command::new("findings")
        .about("Judge the claims of the source documents by the raw records of all runs")
        .after_help(AFTER)
        .args([
            Arg::new("claims")
                .long("claims")
                .value_name("FILE")
                .default_value("experiments/claims/claims.toml")
                .help("Catalogue of claims and runs"),
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .default_value("-")
                .help("Page to write, in Markdown; - for standard output"),
            Arg::new("folder")
                .value_name("FOLDER")
                .num_args(0..)
                .help("Result folders"),
        ])
}

/// `findings`.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let folders = flags.get_many::<String>("folder").into_iter().flatten();
    let folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
    let findings =
        Findings::judge_result_folders(Path::new(argument_value(flags, "claims")), &folders)?;
    let page = findings.markdown();
    match argument_value(flags, "out") {
        "-" => print_output(page),
        path => {
            let path = Path::new(path);
            std::fs::write(path, page).map_err(|error| FileError::new(path, error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
