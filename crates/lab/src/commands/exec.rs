//! `headwater lab exec`: runs a command at one end of a running link.

use super::command_error::CommandError;
use crate::link::enter_network;
use clap::{Arg, ArgMatches, Command};
use rustix::process::Uid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// A description of a running link, for other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkDescription {
    /// Name of the link.
    pub link: String,
    /// The client's end.
    pub client: LinkEndDescription,
    /// The server's end.
    pub server: LinkEndDescription,
}

/// One end of a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkEndDescription {
    /// Address at which the other end reaches this end.
    pub address: String,
    /// Path of the end's network namespace, for `nsenter --net=`.
    pub netns: PathBuf,
}

/// Defines the command.
pub(super) fn define_command() -> Command {
    let name = Arg::new("name").required(true).help("The link's --name");
    let end = Arg::new("end")
        .required(true)
        .value_parser(["client", "server"])
        .help("End of the link");
    let words = Arg::new("command")
        .required(true)
        .num_args(1..)
        .last(true)
        .help("Command, after --");
    Command::new("exec")
        .about("Run a command at one end of a running link")
        .after_help("Example:\n  headwater lab exec home client -- curl http://10.77.0.2/")
        .args([name, end, words])
}

/// Replaces this process by the command. The command runs in the network namespace of the given
/// end.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let name = flags.get_one::<String>("name").map_or("", String::as_str);
    let standing = find_link(name).map_err(|error| {
        let cause = error.to_string();
        let cause = cause.split(" (os error").next().unwrap_or_default();
        format!("no link named {name}: {cause}; start one with `headwater lab link --name {name}`")
    })?;
    let end = match flags.get_one::<String>("end").map(String::as_str) {
        Some("server") => standing.server,
        _ => standing.client,
    };
    let inside = File::open(&end.netns).and_then(|file| enter_network(&file));
    inside.map_err(|error| format!("{}: {error}", end.netns.display()))?;
    let mut words = flags.get_many::<String>("command").into_iter().flatten();
    let program = words.next().map_or("", String::as_str);
    let error = std::process::Command::new(program).args(words).exec();
    Err(CommandError::Failed(format!("{program}: {error}")))
}

/// Sends the description of the link to every process that connects, until this process exits.
///
/// # Errors
/// Another link already uses the name.
pub(super) fn serve_link_description(standing: &LinkDescription) -> Result<(), CommandError> {
    let listener = link_socket_address(&standing.link).and_then(|at| UnixListener::bind_addr(&at));
    let listener = listener.map_err(|error| format!("--name {}: {error}", standing.link))?;
    let text = format_description(standing)?;
    std::thread::spawn(move || {
        for mut asker in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut asker, text.as_bytes());
        }
    });
    Ok(())
}

/// Formats the description as one line of JSON.
pub(super) fn format_description(standing: &LinkDescription) -> Result<String, CommandError> {
    let text = serde_json::to_string(standing).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// Returns whether a link of this owner may be used by `user`.
fn is_trusted_owner(owner: Uid, user: Uid) -> bool {
    owner == user || owner.is_root()
}

fn find_link(name: &str) -> std::io::Result<LinkDescription> {
    let mut text = String::new();
    let mut stream = UnixStream::connect_addr(&link_socket_address(name)?)?;
    let owner = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    // Any user can listen on an abstract socket. The description of another user could move the
    // command into a network of that user.
    if !is_trusted_owner(owner, rustix::process::geteuid()) {
        return Err(std::io::Error::other(format!(
            "it belongs to another user ({})",
            owner.as_raw()
        )));
    }
    stream.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(std::io::Error::from)
}

/// Returns the address of an abstract socket. Such a socket has no file and disappears with the
/// process.
fn link_socket_address(name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("headwater-link/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_of_the_same_user_or_root_are_used() {
        let [root, own, other] = [0, 1000, 1001].map(Uid::from_raw);
        assert!(is_trusted_owner(own, own) && is_trusted_owner(root, own));
        assert!(!is_trusted_owner(other, own) && !is_trusted_owner(own, root));
        let end = || LinkEndDescription {
            address: "10.77.0.1".into(),
            netns: PathBuf::new(),
        };
        let link = format!("exec-test-{}", std::process::id());
        let standing = LinkDescription {
            link: link.clone(),
            client: end(),
            server: end(),
        };
        serve_link_description(&standing)
            .map_err(|_| "a taken name")
            .unwrap();
        assert_eq!(find_link(&link).unwrap().link, link);
    }
}
