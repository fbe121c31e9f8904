//! `headwater man-pages` writes a manual page for each command. Packages contain these pages.

use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn man_pages_command() -> Command {
    Command::new("man-pages")
        .about("Write a manual page for each command into a folder")
        .after_help("Example:\n  headwater man-pages ~/.local/share/man/man1")
        .arg(
            Arg::new("folder")
                .required(true)
                .help("Folder for the manual pages")
                .value_parser(value_parser!(PathBuf)),
        )
}

/// Writes `headwater.1`, `headwater-serve.1` and so on.
pub(crate) fn write_man_pages(command: Command, flags: &ArgMatches) -> ExitCode {
    let Some(folder) = flags.get_one::<PathBuf>("folder") else {
        return 2.into();
    };
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "headwater: cannot write manual pages into {}: {error}",
                folder.display()
            );
            ExitCode::FAILURE
        }
    }
}
