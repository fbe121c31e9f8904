//! The command `headwater lab agent`.

use super::command_error::CommandError;
use super::nats_settings::{NATS, is_subject_token, read_nats_settings};
use super::output::print_output;
use crate::agent::{AgentSettings, NatsSettings, is_host, serve_agent};
use crate::link::check_process_marking_available;
use clap::{ArgMatches, Command};
use net::config::{Setting, SettingLayers, UsageError, build_command_args};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;

const SETTINGS: &[&[Setting]] = &[NATS, OWN];

const OWN: &[Setting] = &[
    Setting::new(
        "name",
        "NAME",
        "",
        "Name of the agent [default: host name and process id]",
    ),
    Setting::new(
        "label",
        "LABEL",
        "",
        "Label that a document's [place.NAME] may require: on = \"LABEL\"",
    )
    .as_list(),
    Setting::new(
        "address",
        "HOST",
        "",
        "Address at which other agents reach it [default: the local address towards the NATS server]",
    ),
    Setting::new(
        "base",
        "DIR",
        ".",
        "Base folder of media paths in documents",
    ),
];

const AFTER: &str = "\
Agents and `headwater lab run FILE --nats URL` use the same NATS server. The places of a run are
distributed over the free agents; an agent serves one experiment at a time. It stops everything
when the controller is silent for 5 s, and leaves nothing behind, however it ends.

An agent runs the commands of documents, as its own user, for everyone who may publish on its NATS
server. Restrict access there: accounts, --nats-creds and tls://.

Exit status: 0 after SIGTERM or Ctrl-C; 1 failure, 2 wrong usage, 3 the processes of an agent could
not be tracked here (run as root or under `unshare -Ur`).

Examples:
  headwater lab agent --nats nats://10.0.0.1:4222 --name edge1
  headwater lab agent --nats tls://lab.example:4222 --nats-creds lab.creds --label load";

/// Defines the command.
pub(super) fn define_command() -> Command {
    Command::new("agent")
        .about("Run parts of experiments on this host for `lab run --nats`")
        .after_help(AFTER)
        .args(build_command_args(SETTINGS))
}

/// Runs the agent until it is stopped.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let layers = SettingLayers::read_settings(SETTINGS, &[], flags)?;
    if layers.print {
        print_output(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let meeting = read_nats_settings(&layers, "")?;
    let meeting = meeting.ok_or_else(|| {
        UsageError(
            "--nats is missing; add the URL of the NATS server, such as --nats nats://HOST:4222"
                .into(),
        )
    })?;
    let myself = read_agent_settings(&layers, &meeting)?;
    check_process_marking_available().map_err(CommandError::from_unavailable)?;
    serve_agent(&meeting, myself, &|name| {
        print_output(format_args!("agent {name} is ready\n"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read_agent_settings(
    layers: &SettingLayers,
    meeting: &NatsSettings,
) -> Result<AgentSettings, CommandError> {
    let plain = |text: &str| match is_subject_token(text) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - and _; at most 64".to_owned()),
    };
    let labels = layers.setting_texts("label");
    if let Some(wrong) = labels.iter().find(|label| !is_subject_token(label)) {
        return Err(UsageError(format!(
            "--label {wrong}: letters, digits, - and _; at most 64"
        ))
        .into());
    }
    let name = layers.parse_setting("name", plain)?;
    let host = |text: &str| match is_host(text) {
        true => Ok(text.to_owned()),
        false => Err("write an IP address or a host name".to_owned()),
    };
    let address = layers.parse_setting("address", host)?;
    let base = layers.setting_path("base").unwrap_or_default();
    let base = std::path::absolute(Path::new(&base)).map_err(|error| error.to_string())?;
    Ok(AgentSettings {
        name: name.unwrap_or_else(default_agent_name),
        labels,
        address: address.unwrap_or_else(|| {
            meeting
                .server_address()
                .and_then(find_local_address)
                .map_or_else(|| "127.0.0.1".to_owned(), |own| own.to_string())
        }),
        base,
    })
}

fn default_agent_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let host: String = host.trim().chars().take(40).map(plain).collect();
    format!("{host}-{}", std::process::id())
}

/// Returns the local address from which this host reaches the server. Sends nothing to the server.
fn find_local_address((host, port): (String, u16)) -> Option<IpAddr> {
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
    fn an_address_is_a_host_and_no_shell_text() {
        let read = |address: &str| {
            let arguments = ["agent", "--nats", "nats://localhost", "--address", address];
            let flags = define_command().try_get_matches_from(arguments).unwrap();
            let layers = SettingLayers::read_settings(SETTINGS, &[], &flags).unwrap();
            read_agent_settings(&layers, &NatsSettings::default()).map(|own| own.address)
        };
        assert_eq!(
            read("load-1.example").ok().as_deref(),
            Some("load-1.example")
        );
        assert!(read("$(id)").is_err());
    }

    #[test]
    fn an_agent_advertises_its_route_to_the_server() {
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
            let meeting = NatsSettings {
                url,
                ..NatsSettings::default()
            };
            let found = meeting.server_address().and_then(find_local_address);
            assert_eq!(found.map(|own| own.to_string()).as_deref(), Some(own));
        }
    }
}
