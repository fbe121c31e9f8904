//! `headwater index`: index MP4s of a title's files, and a server manifest that names them.

mod relative;
mod sources;
mod write;

use crate::config::storage::{STORAGE, options};
use crate::config::{Layers, Sources, Wrong};
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
  headwater index s3://bucket/films/tos.mp4 -o index/   to be put beside it, in the bucket

Serve the folder that has them: film.ism/.m3u8 and film.ism/.mpd play, and GET of film-index.mp4
is the film as one progressive MP4. Media is named relative to the index MP4 or below --base; media
of an http(s) URL by that URL, which `serve --media-from` must allow; media of a bucket by its own
name, so that its index MP4 belongs beside it. It must stay where it is; index it again when it
changes. URLs are read as `serve` reads them: credentials as aws-cli finds them, settings storage-*.

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
                .help("the title's media files, or folders of them: paths, or s3://, gs://, az://, http(s):// URLs"),
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
        .next_help_heading("How URLs are read")
        .args(net::config::flags(&[STORAGE]))
}

/// Writes what the words ask for, and says what it wrote.
pub fn index(flags: &ArgMatches) -> ExitCode {
    let read = layers(flags).and_then(|layers| Ok((options(&layers)?, layers)));
    let storage = match read {
        Ok((_, layers)) if layers.print => {
            // Whoever reads it may have seen enough.
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
    let wanted = write::Wanted {
        sources: sources.cloned().collect(),
        storage,
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

/// How URLs are read: flags, and the environment's `HEADWATER_STORAGE_*`.
fn layers(flags: &ArgMatches) -> Result<Layers, Wrong> {
    let ours = |name: &str| name.starts_with("HEADWATER_STORAGE_");
    Layers::new(&Sources {
        knobs: &[STORAGE],
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok().filter(|_| ours(name)),
        read: &|path| std::fs::read_to_string(path),
    })
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
