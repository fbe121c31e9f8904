//! `headwater check`: what a title is, and what a player will stumble over.

mod findings;
mod open;
mod report;

use crate::config::segment_ms;
use clap::{Arg, ArgAction, ArgMatches, Command};
use report::Report;
use std::io::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  headwater check film.mp4                     one film
  headwater check ladder/                      a folder of renditions, or of films
  headwater check https://example.com/a.mp4    a film on a server that answers ranges
  headwater check film.mp4 --segment 2s        as it would be cut for 2 s segments
  headwater check film.mp4 --json | jq .       for machines

Exit status: 0 where everything will play, 1 where something will not, 2 for wrong usage.";

/// The words of `headwater check`.
pub fn command() -> Command {
    Command::new("check")
        .about("Say what a title is, its grid, and what a player will stumble over")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("target")
                .value_name("FILE|FOLDER|URL")
                .required(true)
                .help("a film, a folder of renditions or films, or the http(s) URL of a film"),
        )
        .arg(
            Arg::new("segment")
                .long("segment")
                .value_name("TIME")
                .default_value("6s")
                .value_parser(segment_ms)
                .help("wished segment length, such as 6s or 2500ms"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("print one JSON document: {\"titles\": [...]}"),
        )
}

/// Examines what the words name, and prints it.
pub fn check(flags: &ArgMatches) -> ExitCode {
    let target = flags.get_one::<String>("target").map_or("", String::as_str);
    let segment_ms = flags.get_one::<u32>("segment").copied().unwrap_or(6000);
    let reports = match open::titles(target, segment_ms) {
        Ok(titles) => titles.into_iter().map(|(name, title)| match title {
            Ok(title) => Report::of(&name, &title),
            Err(error) => Report::refused(&name, error),
        }),
        Err(error) => {
            eprintln!("headwater check: {target}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let reports: Vec<Report> = reports.collect();
    let text = if flags.get_flag("json") {
        format!("{}\n", serde_json::json!({ "titles": reports }))
    } else {
        let texts: Vec<String> = reports.iter().map(Report::text).collect();
        texts.join("\n")
    };
    // Whoever reads it may have seen enough and gone (`| head`).
    let _ = std::io::stdout().write_all(text.as_bytes());
    if reports.iter().any(Report::failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
