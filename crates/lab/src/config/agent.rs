//! `headwater lab agent`.

use super::nats::{NATS, meeting};
use super::{Stop, layers, say};
use crate::agent::{Meeting, Myself, is_plain, serve};
use crate::link::marked;
use clap::{ArgMatches, Command};
use net::config::{Knob, Layers, Wrong, flags as knob_flags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;

const KNOBS: &[&[Knob]] = &[NATS, OWN];

const OWN: &[Knob] = &[
    Knob::new(
        "name",
        "NAME",
        "",
        "What it is called [default: host's name and process]",
    ),
    Knob::new(
        "label",
        "LABEL",
        "",
        "What a document's [place.NAME] may ask for: on = \"LABEL\"",
    )
    .list(),
    Knob::new(
        "address",
        "HOST",
        "",
        "Where other agents reach what listens here [default: as the NATS server is reached]",
    ),
    Knob::new(
        "base",
        "DIR",
        ".",
        "Where media lies that documents name by paths",
    ),
];

const AFTER: &str = "\
Agents and `headwater lab run FILE --nats URL` meet on an ordinary NATS server. A run's places are
spread over the agents that are there and free; an agent serves one experiment at a time. It ends
what it runs when whoever runs the experiment is not heard for 5 s, and leaves nothing behind,
however it ends.

An agent runs the commands of documents, as its own user, for whoever may publish on its NATS. Let
only those publish there: accounts, --nats-creds and tls:// are the server's.

Exit status: 0 after SIGTERM or Ctrl-C; 1 failure, 2 wrong usage, 3 what it runs could not be ended
here (it needs root or `unshare -Ur`).

Examples:
  headwater lab agent --nats nats://10.0.0.1:4222 --name edge1
  headwater lab agent --nats tls://lab.example:4222 --nats-creds lab.creds --label load";

/// The words.
pub(super) fn command() -> Command {
    Command::new("agent")
        .about("Carry out, on this host, a part of experiments that are run elsewhere")
        .after_help(AFTER)
        .args(knob_flags(KNOBS))
}

/// Serves until it is told to end.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let layers = layers(KNOBS, flags)?;
    if layers.print {
        say(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let meeting = meeting(&layers, "")?;
    let meeting = meeting.ok_or_else(|| Wrong("--nats URL: where agents meet".into()))?;
    let myself = myself(&layers, &meeting)?;
    marked().map_err(Stop::Unable)?;
    serve(&meeting, myself, &|name| {
        say(format_args!("agent {name} is ready\n"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn myself(layers: &Layers, meeting: &Meeting) -> Result<Myself, Stop> {
    let plain = |text: &str| match is_plain(text) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - and _; at most 64".to_owned()),
    };
    let labels = layers.list("label");
    if let Some(wrong) = labels.iter().find(|label| !is_plain(label)) {
        return Err(Wrong(format!(
            "--label {wrong}: letters, digits, - and _; at most 64"
        ))
        .into());
    }
    let name = layers.with("name", plain)?;
    let base = layers.path("base").unwrap_or_default();
    let base = std::path::absolute(Path::new(&base)).map_err(|error| error.to_string())?;
    Ok(Myself {
        name: name.unwrap_or_else(default_name),
        labels,
        address: match layers.one("address") {
            Some(address) => address.to_owned(),
            None => meeting
                .server()
                .and_then(reached_from)
                .map_or_else(|| "127.0.0.1".to_owned(), |own| own.to_string()),
        },
        base,
    })
}

fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let host: String = host.trim().chars().take(40).map(plain).collect();
    format!("{host}-{}", std::process::id())
}

/// This host's address on the way to the server; nothing is sent.
fn reached_from((host, port): (String, u16)) -> Option<IpAddr> {
    let servers = (host.as_str(), port).to_socket_addrs().ok()?;
    let own = |server: SocketAddr| {
        let any = match server {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(server).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    servers.into_iter().find_map(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_reached_as_it_reaches_the_server() {
        for (url, own) in [
            ("nats://127.0.0.1", "127.0.0.1"),
            (
                "nats://lab:secret@127.0.0.1:4223,nats://192.0.2.1",
                "127.0.0.1",
            ),
            ("tls://[::1]:4222", "::1"),
            ("nats://[::1]", "::1"),
        ] {
            let url = url.to_owned();
            let meeting = Meeting {
                url,
                ..Meeting::default()
            };
            let found = meeting.server().and_then(reached_from);
            assert_eq!(found.map(|own| own.to_string()).as_deref(), Some(own));
        }
    }
}
