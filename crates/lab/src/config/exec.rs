//! `headwater lab exec`: a command at an end of a link that stands.

use super::Stop;
use crate::link::enter;
use clap::{Arg, ArgMatches, Command};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// A link that stands: what others need to use it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Standing {
    /// Its name.
    pub link: String,
    /// Where clients run.
    pub client: End,
    /// Where servers run.
    pub server: End,
}

/// One end of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct End {
    /// The end's address, that the other end reaches it by.
    pub address: String,
    /// Its namespace, for `nsenter --net=`.
    pub netns: PathBuf,
}

/// The words of `headwater lab exec`.
pub(super) fn command() -> Command {
    let name = Arg::new("name").required(true).help("The link's --name");
    let end = Arg::new("end")
        .required(true)
        .value_parser(["client", "server"])
        .help("Which end of it");
    let words = Arg::new("command")
        .required(true)
        .num_args(1..)
        .last(true)
        .help("The command, after --");
    Command::new("exec")
        .about("Run a command at an end of a link that stands")
        .after_help("Example:\n  headwater lab exec home client -- curl http://10.77.0.2/")
        .args([name, end, words])
}

/// Becomes the command, inside.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let name = flags.get_one::<String>("name").map_or("", String::as_str);
    let standing = find(name).map_err(|error| {
        format!(
            "there is no link named {name} ({error}); `headwater lab link --name {name}` makes one"
        )
    })?;
    let end = match flags.get_one::<String>("end").map(String::as_str) {
        Some("server") => standing.server,
        _ => standing.client,
    };
    let inside = File::open(&end.netns).and_then(|file| enter(&file));
    inside.map_err(|error| format!("{}: {error}", end.netns.display()))?;
    let mut words = flags.get_many::<String>("command").into_iter().flatten();
    let program = words.next().map_or("", String::as_str);
    let error = std::process::Command::new(program).args(words).exec();
    Err(Stop::Failed(format!("{program}: {error}")))
}

/// Answers everyone who asks for the link by its name, as long as this process lives.
///
/// # Errors
/// When another link has the name.
pub(super) fn announce(standing: &Standing) -> Result<(), Stop> {
    let listener = address(&standing.link).and_then(|at| UnixListener::bind_addr(&at));
    let listener = listener.map_err(|error| format!("--name {}: {error}", standing.link))?;
    let text = line(standing)?;
    std::thread::spawn(move || {
        for mut asker in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut asker, text.as_bytes());
        }
    });
    Ok(())
}

/// The line that says how to use a link.
pub(super) fn line(standing: &Standing) -> Result<String, Stop> {
    let text = serde_json::to_string(standing).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn find(name: &str) -> std::io::Result<Standing> {
    let mut text = String::new();
    UnixStream::connect_addr(&address(name)?)?.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(std::io::Error::from)
}

/// Abstract: no file, gone with the process.
fn address(name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("headwater-link/{name}"))
}
