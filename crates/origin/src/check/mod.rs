//! The command `headwater check`, which describes titles and the problems that players will have
//! with them.

mod examine;
mod findings;
pub(crate) mod foreign_containers;
mod left_out_remedies;
mod open;
mod protection;
mod protection_remedies;
mod read_settings;
mod remedies;
mod report;
mod summary_line;
mod text_rendition_row;

use crate::config::parse_segment_ms;
use crate::config::remote_libraries::STORAGE;
use crate::drm::settings::DRM;
use clap::{Arg, ArgAction, ArgMatches, Command};
use examine::examine_title;
use report::TitleReport;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  headwater check film.mp4                     one film
  headwater check ladder/                      a folder of renditions, or of films
  headwater check https://example.com/a.mp4    a film on a server that supports ranges
  headwater check s3://bucket/films/a.mp4      a film in an object store
  headwater check film.mp4 --segment 2s        for 2 s segments
  headwater check film.mp4 --json | jq .       machine-readable
  headwater check ~/films --config serve.toml  with the keys of a server's [drm] settings

Exit status: 0 if everything plays, 1 if something does not, 2 for wrong usage.";

/// Returns the command line of `headwater check`.
pub fn define_check_command() -> Command {
    Command::new("check")
        .about("Describe a title, its segments and the problems that players will have")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("target")
                .value_name("FILE|FOLDER|URL")
                .required(true)
                .help("A film, or a folder of renditions or films: a path, or an s3://, gs://, az:// or http(s):// URL"),
        )
        .arg(
            Arg::new("segment")
                .long("segment")
                .value_name("TIME")
                .default_value("6s")
                .value_parser(parse_segment_ms)
                .help("Target segment length, such as 6s or 2500ms"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print one JSON document: {\"titles\": [...], \"ignored\": [...]}"),
        )
        .arg(
            Arg::new("follow-links")
                .long("follow-links")
                .action(ArgAction::SetTrue)
                .help("Follow symbolic links that lead out of the folder, as `serve` does"),
        )
        .args(net::config::build_command_args(&[]))
        .next_help_heading("Storage")
        .args(net::config::build_setting_args(STORAGE))
        .next_help_heading("Protection (DRM)")
        .args(net::config::build_setting_args(DRM))
}

/// Returns whether standard output is a terminal to which colors may be written (no-color.org).
fn can_print_colors() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Runs the command and prints the report.
pub fn run_check(flags: &ArgMatches) -> ExitCode {
    let target = flags.get_one::<String>("target").map_or("", String::as_str);
    let segment_ms = flags.get_one::<u32>("segment").copied().unwrap_or(6000);
    let layers = match read_settings::read_check_settings(flags) {
        Ok(layers) => layers,
        Err(wrong) => return report_usage_error(&wrong),
    };
    if layers.print {
        // Ignores the error, because the reader may have closed the pipe.
        let _ = write!(std::io::stdout().lock(), "{layers}");
        return ExitCode::SUCCESS;
    }
    let (storage, drm) = match read_settings::open_storage_and_drm(&layers) {
        Ok(opened) => opened,
        Err(wrong) => return report_usage_error(&wrong),
    };
    let storage = store::Options {
        follow_links: flags.get_flag("follow-links"),
        ..storage
    };
    let library = match open::open_titles(target, segment_ms, &storage) {
        Ok(library) => library,
        Err(error) => {
            eprintln!("headwater check: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ignored = library.ignored;
    let reports = library.titles.into_iter().map(|(name, title)| match title {
        Ok(title) => examine_title(&name, &title, drm.as_ref()),
        Err(fault) => TitleReport::from_error(&name, fault.message, &fault.remedy),
    });
    let reports: Vec<TitleReport> = reports.collect();
    let text = if flags.get_flag("json") {
        let document = serde_json::json!({ "titles": reports, "ignored": ignored });
        format!("{document}\n")
    } else {
        let colors = can_print_colors();
        let texts = reports.iter().map(|report| report.format_report(colors));
        let mut texts: Vec<String> = texts.collect();
        if reports.len() > 1 || !ignored.is_empty() {
            texts.push(format!(
                "{}\n",
                summary_line::format_summary_line(&reports, &ignored)
            ));
        }
        texts.join("\n")
    };
    // Ignores the error, because the reader may have closed the pipe (`| head`).
    let _ = std::io::stdout().write_all(text.as_bytes());
    if reports.iter().any(TitleReport::has_errors) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn report_usage_error(wrong: &str) -> ExitCode {
    eprintln!("headwater check: {wrong}");
    ExitCode::from(2)
}
