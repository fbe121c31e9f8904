//! `headwater lab link`.

use super::command_error::CommandError;
use super::exec::{
    LinkDescription, LinkEndDescription, format_description, serve_link_description,
};
use super::link_options::{SHAPE, read_link_shape};
use super::link_session_events::{
    SessionEndCause, forward_process_exit, forward_signals, forward_stdin_eof, wait_for_session_end,
};
use super::output::print_output;
use crate::link::{
    CleanupGuard, CompetingFlow, LinkReport, LinkShape, NetworkNamespace, TunLink,
    check_links_available,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use net::config::{Setting, SettingLayers, build_command_args, parse_duration};
use serde::Serialize;
use std::io::{self};
use std::net::{SocketAddrV4, TcpStream};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const SETTINGS: &[&[Setting]] = &[SHAPE, RUN];

const RUN: &[Setting] = &[
    Setting::new(
        "server",
        "COMMAND",
        "",
        "Shell command of a server at the other end; it ends with the link",
    ),
    Setting::new(
        "port",
        "PORT",
        "80",
        "With --server: start the command when this port accepts connections",
    ),
    Setting::new(
        "compete",
        "ALGORITHM",
        "",
        "Endless competing download with this congestion control",
    )
    .as_list(),
    Setting::new(
        "settle",
        "DURATION",
        "0s",
        "Time that competing downloads run before the command starts",
    ),
    Setting::new(
        "name",
        "NAME",
        "",
        "Name of the link for `lab exec` [default: link-PID]",
    ),
    Setting::new(
        "json",
        "FILE",
        "",
        "File for the statistics and lateness of the link; - for standard output",
    ),
];

/// Time limit for the server to accept connections.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(30);

const AFTER: &str = "\
The command runs at the client's end (10.77.0.1), the server at the other end (10.77.0.2). Both ends
are empty network namespaces, so that all ports are free. Packets are IPv4, at most 1500 bytes.
Losses occur after the bottleneck; a full queue drops the newest packet.

Without a command, the link runs until SIGTERM, Ctrl-C, or with --until-eof the end of standard
input. It prints its description as one line of JSON. `headwater lab exec NAME client|server --
COMMAND` runs a command at one end. When the link stops or is killed, all processes at
both ends are stopped.

A trace is a file of lines with seconds and a rate; it repeats at the line with `end`:
  0     10mbit
  30    2mbit
  32.5  0bit
  35    end

Exit status: that of the command; 1 failure, 2 wrong usage, 3 this machine cannot emulate links.

Examples:
  headwater lab link --rate 20mbit --delay 100ms --queue 0.5bdp --loss 0.2% \\
      --server 'headwater serve --listen 10.77.0.2:80 films' -- \\
      curl -o /dev/null http://10.77.0.2/film.mp4
  headwater lab link --name home --rate 10mbit --delay 20ms &
  headwater lab exec home server -- iperf3 -s -1 &
  headwater lab exec home client -- iperf3 -c 10.77.0.2 -R";

/// Defines the command.
pub(super) fn define_command() -> Command {
    let words = Arg::new("command")
        .num_args(1..)
        .last(true)
        .help("Command at the client's end, after --");
    let until_eof = Arg::new("until-eof")
        .long("until-eof")
        .action(ArgAction::SetTrue)
        .help("Stop at the end of standard input, for example when the parent process exits");
    Command::new("link")
        .about("Run commands at two ends of an emulated link: rate, delay, queue, loss")
        .after_help(AFTER)
        .arg(words)
        .arg(until_eof)
        .args(build_command_args(SETTINGS))
}

/// Runs the command.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let layers = SettingLayers::read_settings(SETTINGS, &[], flags)?;
    if layers.print {
        print_output(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let shape = read_link_shape(&layers)?;
    let port = layers.parse_setting("port", |text| {
        text.parse().map_err(|_| "a port is from 1 to 65535".into())
    })?;
    let settle = layers
        .parse_setting("settle", parse_duration)?
        .unwrap_or_default();
    check_links_available().map_err(CommandError::from_unavailable)?;
    let bed = LinkSession::new(shape).map_err(link_error)?;
    let (events, mut inbox) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(link_error)?;
    runtime
        .block_on(async { forward_signals(&events) })
        .map_err(link_error)?;
    let standing = bed.describe_link(&layers);
    serve_link_description(&standing)?;
    if let Some(text) = layers.setting_text("server") {
        let child = start_inside(&bed.server, shell_command(text))
            .map_err(|error| format!("{text}: {error}"))?;
        forward_process_exit(child, &events, SessionEndCause::Server);
        bed.wait_for_server(port.unwrap_or(80), &runtime, &mut inbox)?;
    }
    let flows = bed.start_competing_flows(&layers.setting_texts("compete"))?;
    let words: Vec<&String> = flags.get_many("command").into_iter().flatten().collect();
    let mut end = None;
    if !flows.is_empty() {
        // Only `block_on` runs the task that receives signals.
        end = runtime.block_on(async {
            let end = wait_for_session_end(&mut inbox, !words.is_empty());
            timeout(settle, end).await.ok()
        });
    }
    if end.is_none() {
        match words.split_first() {
            Some((program, rest)) => bed.start_client(program, rest, &events)?,
            None => print_output(format_description(&standing)?),
        }
        if flags.get_flag("until-eof") {
            forward_stdin_eof(&events);
        }
    }
    let code = end
        .unwrap_or_else(|| runtime.block_on(wait_for_session_end(&mut inbox, !words.is_empty())));
    let report = LinkResult {
        report: bed.link.report(),
        competing_bytes: flows.iter().map(CompetingFlow::received_bytes).collect(),
    };
    drop((flows, bed.guard));
    if let Some(path) = layers.setting_text("json") {
        write_link_result(path, &report)?;
    }
    Ok(code)
}

fn link_error(error: io::Error) -> String {
    format!("cannot create a link: {error}")
}

/// The JSON result of a link session.
#[derive(Serialize)]
struct LinkResult {
    #[serde(flatten)]
    report: LinkReport,
    competing_bytes: Vec<u64>,
}

/// A link, its two namespaces, and the guard that ends the processes in these namespaces.
struct LinkSession {
    // Fields are dropped in this order. The guard is the first field, so that the processes end
    // while the link can still carry their last packets.
    guard: CleanupGuard,
    link: TunLink,
    client: NetworkNamespace,
    server: NetworkNamespace,
}

impl LinkSession {
    fn new(shape: LinkShape) -> io::Result<LinkSession> {
        let (client, server) = (NetworkNamespace::new()?, NetworkNamespace::new()?);
        let link = TunLink::start(&client, &server, 0, shape)?;
        let mut guard = CleanupGuard::start()?;
        guard.register_namespace(&client)?;
        guard.register_namespace(&server)?;
        Ok(LinkSession {
            guard,
            link,
            client,
            server,
        })
    }

    /// Starts the command at the client's end.
    fn start_client(
        &self,
        program: &str,
        rest: &[&String],
        events: &mpsc::UnboundedSender<SessionEndCause>,
    ) -> Result<(), CommandError> {
        let mut command = std::process::Command::new(program);
        command.args(rest);
        let child = start_inside(&self.client, command).map_err(|error| {
            let cause = net::describe_io_error(&error);
            format!("cannot start the command {program}: {cause}")
        })?;
        forward_process_exit(child, events, SessionEndCause::Command);
        Ok(())
    }

    fn start_competing_flows(
        &self,
        algorithms: &[String],
    ) -> Result<Vec<CompetingFlow>, CommandError> {
        let start = |name: &String| {
            CompetingFlow::start(self.link.addresses()[1], &self.client, &self.server, name)
                .map_err(|error| CommandError::Failed(format!(
                        "--compete {name}: cannot start the download: {error}; the kernel lists its \
                         algorithms in /proc/sys/net/ipv4/tcp_available_congestion_control"
                    )))
        };
        algorithms.iter().map(start).collect()
    }

    /// Waits until the server's port accepts connections.
    fn wait_for_server(
        &self,
        port: u16,
        runtime: &Runtime,
        inbox: &mut mpsc::UnboundedReceiver<SessionEndCause>,
    ) -> Result<(), CommandError> {
        let at = SocketAddrV4::new(self.link.addresses()[1], port);
        let failed = |what: &str| {
            let what = format!("the server does not accept connections on {at}: {what}");
            Ok(Err(CommandError::Failed(what)))
        };
        let began = Instant::now();
        let waited = self.server.run_in_namespace(|| {
            while began.elapsed() < SERVER_START_TIMEOUT {
                if inbox.try_recv().is_ok() {
                    return failed("it exited, or the link was stopped");
                }
                if TcpStream::connect_timeout(&at.into(), Duration::from_secs(1)).is_ok() {
                    return Ok(Ok(()));
                }
                // `block_on` also runs the task that receives signals.
                runtime.block_on(async { sleep(Duration::from_millis(5)).await });
            }
            failed("not within 30 s")
        });
        waited.map_err(|error| error.to_string())?
    }

    fn describe_link(&self, layers: &SettingLayers) -> LinkDescription {
        let [at_client, at_server] = self.link.addresses();
        let end = |address: std::net::Ipv4Addr, namespace: &NetworkNamespace| LinkEndDescription {
            address: address.to_string(),
            netns: namespace.path(),
        };
        let unnamed = || format!("link-{}", std::process::id());
        LinkDescription {
            link: layers
                .setting_text("name")
                .map_or_else(unnamed, str::to_owned),
            client: end(at_client, &self.client),
            server: end(at_server, &self.server),
        }
    }
}

fn shell_command(text: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(text);
    command
}

fn start_inside(at: &NetworkNamespace, mut command: std::process::Command) -> io::Result<Child> {
    at.run_in_namespace(|| command.spawn())
}

fn write_link_result(path: &str, report: &LinkResult) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    if path == "-" {
        print_output(text + "\n");
        return Ok(());
    }
    std::fs::write(path, text + "\n")
        .map_err(|error| CommandError::Failed(format!("{path}: {error}")))
}
