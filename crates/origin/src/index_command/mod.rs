//! The command `headwater index`, which writes index MP4s of a title's files. It also writes a
//! server manifest that names the index MP4s.

pub(crate) mod media_files;
mod relative_path;
mod subsamples;
mod write_index;

use crate::config::remote_libraries::{STORAGE, read_storage_options};
use crate::config::{SettingLayers, SettingSources, UsageError};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use write_index::IndexCommandOutput;

const EXAMPLES: &str = "\
Examples:
  headwater index film.mp4 -o index/           index/film-index.mp4 and index/film.ism
  headwater index ladder/ -o ladder/           index a folder of media in place
  headwater index v.cmfv a.cmfa -o . --name tos
  headwater index ladder/ -o . --base https://media.example.com/films/tos/
  headwater index s3://bucket/films/tos.mp4 -o index/   copy the result next to the film

Serve the folder that contains the files: film.ism/.m3u8 and film.ism/.mpd play, and film-index.mp4
is the film as one progressive MP4. The index MP4 refers to its media relative to itself or
below --base. Media at an http(s) URL is referred to by that URL, which `serve --media-from` must
allow. Media in a bucket is referred to by name, so copy its index MP4 next to it. Do not move the
media afterwards, and index it again when it changes. Credentials and storage settings are those
of `serve`.

Exit status: 0 if all files are written, 1 if not, 2 for wrong usage.";

/// Returns the command line of `headwater index`.
pub fn define_index_command() -> Command {
    Command::new("index")
        .about("Write index MP4s of a title's files and a server manifest (.ism)")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .required(true)
                .action(ArgAction::Append)
                .help(
                    "Media files or folders of them: paths or s3://, gs://, az://, http(s):// URLs",
                ),
        )
        .arg(
            Arg::new("out")
                .short('o')
                .long("out")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Output folder; created if missing"),
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("Name of the server manifest [default: that of the first SOURCE]"),
        )
        .arg(
            Arg::new("base")
                .long("base")
                .value_name("URL")
                .help("Refer to the media by URLs below this one instead of relative paths"),
        )
        .arg(
            Arg::new("subsamples")
                .long("subsamples")
                .action(ArgAction::SetTrue)
                .help("Also store the subsamples of the video, so that encrypted segments start early"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print one JSON document: {\"manifest\": ..., \"files\": [...]}"),
        )
        .args(net::config::build_command_args(&[]))
        .next_help_heading("Storage")
        .args(net::config::build_setting_args(STORAGE))
}

/// Runs the command and prints the written files.
pub fn run_index(flags: &ArgMatches) -> ExitCode {
    let read = read_storage_settings(flags)
        .and_then(|layers| Ok((read_storage_options(&layers)?, layers)));
    let storage = match read {
        Ok((_, layers)) if layers.print => {
            // Ignores the error, because the reader may have closed the pipe.
            let _ = write!(std::io::stdout().lock(), "{layers}");
            return ExitCode::SUCCESS;
        }
        Ok((storage, _)) => storage,
        Err(wrong) => {
            eprintln!("headwater index: {wrong}");
            return ExitCode::from(2);
        }
    };
    let sources = flags.get_many::<String>("source").unwrap_or_default();
    let wanted = write_index::IndexArguments {
        sources: sources.cloned().collect(),
        storage,
        out: flags.get_one::<PathBuf>("out").cloned().unwrap_or_default(),
        name: flags.get_one::<String>("name").cloned(),
        base: flags.get_one::<String>("base").cloned(),
        has_subsamples: flags.get_flag("subsamples"),
    };
    match write_index::write_index_files(&wanted) {
        Ok(made) => {
            let text = if flags.get_flag("json") {
                format!("{}\n", serde_json::json!(made))
            } else {
                format_written_files(&made)
            };
            // Ignores the error, because the reader may have closed the pipe.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("headwater index: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the storage settings from flags and from `HEADWATER_STORAGE_*`.
fn read_storage_settings(flags: &ArgMatches) -> Result<SettingLayers, UsageError> {
    let is_storage_setting = |name: &str| name.starts_with("HEADWATER_STORAGE_");
    SettingLayers::new(&SettingSources {
        settings: &[STORAGE],
        tables: &[],
        flags,
        env: &|name| {
            std::env::var(name)
                .ok()
                .filter(|_| is_storage_setting(name))
        },
        read: &|path| std::fs::read_to_string(path),
    })
}

fn format_written_files(made: &IndexCommandOutput) -> String {
    let files = made.files.iter().map(|file| {
        let (path, media, bytes) = (file.path.display(), &file.media, file.bytes);
        format!(
            "{path}: {bytes} bytes, index of {media} ({} bytes)\n",
            file.media_bytes
        )
    });
    let manifest = format!("{}\n", made.manifest.display());
    files.chain([manifest]).collect()
}
