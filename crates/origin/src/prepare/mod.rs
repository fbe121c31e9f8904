//! `headwater index`: index MP4s of a title's files, and a server manifest that names them.

mod relative;
mod write;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use write::Made;

const EXAMPLES: &str = "\
Examples:
  headwater index film.mp4 -o index/           index/film-index.mp4 and index/film.ism
  headwater index ladder/ -o ladder/           of all media in a folder, beside them
  headwater index v.cmfv a.cmfa -o . --name tos
  headwater index ladder/ -o . --base https://media.example.com/films/tos/

Serve the folder that has them: film.ism/.m3u8 and film.ism/.mpd play, and GET of film-index.mp4
is the film as one progressive MP4. Media is named relative to the index MP4 (or below --base), and
must stay where it is; index it again when it changes.

Exit status: 0 where all files are written, 1 where not, 2 for wrong usage.";

/// The words of `headwater index`.
pub fn command() -> Command {
    Command::new("index")
        .about("Write index MP4s of a title's files, and a server manifest (.ism) that names them")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .required(true)
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .help("the title's media files, or folders of them"),
        )
        .arg(
            Arg::new("out")
                .short('o')
                .long("out")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("where to write; made if it is not there"),
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("the server manifest's name [default: the first SOURCE's]"),
        )
        .arg(
            Arg::new("base")
                .long("base")
                .value_name("URL")
                .help("name the media by URLs below this one, instead of relative paths"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("print one JSON document: {\"manifest\": ..., \"files\": [...]}"),
        )
}

/// Writes what the words ask for, and says what it wrote.
pub fn index(flags: &ArgMatches) -> ExitCode {
    let sources = flags.get_many::<PathBuf>("source").unwrap_or_default();
    let wanted = write::Wanted {
        sources: sources.cloned().collect(),
        out: flags.get_one::<PathBuf>("out").cloned().unwrap_or_default(),
        name: flags.get_one::<String>("name").cloned(),
        base: flags.get_one::<String>("base").cloned(),
    };
    match write::write(&wanted) {
        Ok(made) => {
            let text = if flags.get_flag("json") {
                format!("{}\n", serde_json::json!(made))
            } else {
                told(&made)
            };
            // Whoever reads it may have seen enough and gone.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("headwater index: {why}");
            ExitCode::FAILURE
        }
    }
}

fn told(made: &Made) -> String {
    let files = made.files.iter().map(|file| {
        let (path, media, bytes) = (file.path.display(), &file.media, file.bytes);
        format!(
            "{path}: {bytes} bytes, of {media}, {} bytes\n",
            file.media_bytes
        )
    });
    let manifest = format!("{}\n", made.manifest.display());
    files.chain([manifest]).collect()
}
