//! `headwater lab link`.

use super::events::{Event, listen, report_end, until_end, until_eof};
use super::exec::{End, Standing, announce, line};
use super::shape::{SHAPE, shape};
use super::{Stop, layers, say};
use crate::link::{Flow, Guard, Link, Namespace, Report, Shape, available};
use clap::{Arg, ArgAction, ArgMatches, Command};
use net::config::{Knob, Layers, duration, flags as knob_flags};
use serde::Serialize;
use std::io::{self};
use std::net::{SocketAddrV4, TcpStream};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const KNOBS: &[&[Knob]] = &[SHAPE, RUN];

const RUN: &[Knob] = &[
    Knob::new(
        "server",
        "COMMAND",
        "",
        "A server to run at the other end, by the shell; it ends with the link",
    ),
    Knob::new(
        "port",
        "PORT",
        "80",
        "With --server: COMMAND starts when this port answers",
    ),
    Knob::new(
        "compete",
        "ALGORITHM",
        "",
        "A download that never ends beside the command, sent with this congestion control",
    )
    .list(),
    Knob::new(
        "settle",
        "DURATION",
        "0s",
        "How long competing downloads run before the command starts",
    ),
    Knob::new(
        "name",
        "NAME",
        "",
        "What `lab exec` finds the link by [default: link-PID]",
    ),
    Knob::new(
        "json",
        "FILE",
        "",
        "Write what the link did, and how late it was, at the end; - is standard output",
    ),
];

/// How long a server has to answer on its port.
const SERVER_WAITS: Duration = Duration::from_secs(30);

const AFTER: &str = "\
The command runs at the client's end (10.77.0.1), the server at the other (10.77.0.2). Both are
network namespaces with nothing else in them, so ports are free. Packets are IPv4, 1500 bytes at
most; losses come after the bottleneck, full queues drop the newest packet.

Without a command the link stands until SIGTERM, Ctrl-C, or with --until-eof the end of standard
input; one JSON line says what it is called. `headwater lab exec NAME client|server -- COMMAND`
runs something at an end. Whatever runs at either end is ended with the link, also when the link
is killed; nothing stays.

A trace is a file of lines: seconds and the rate from then on, the last with `end`, where it begins
anew:
  0     10mbit
  30    2mbit
  32.5  0bit
  35    end

Exit status: the command's; 1 failure, 2 wrong usage, 3 this machine makes no links.

Examples:
  headwater lab link --rate 20mbit --delay 100ms --queue 0.5bdp --loss 0.2% \\
      --server 'headwater serve --listen 10.77.0.2:80 films' -- \\
      curl -o /dev/null http://10.77.0.2/film.mp4
  headwater lab link --name home --rate 10mbit --delay 20ms &
  headwater lab exec home server -- iperf3 -s -1 &
  headwater lab exec home client -- iperf3 -c 10.77.0.2 -R";

/// The words of `headwater lab link`.
pub(super) fn command() -> Command {
    let words = Arg::new("command")
        .num_args(1..)
        .last(true)
        .help("What to run at the client's end, after --");
    let until_eof = Arg::new("until-eof")
        .long("until-eof")
        .action(ArgAction::SetTrue)
        .help("End at the end of standard input: with whoever holds it, however that ends");
    Command::new("link")
        .about("Run commands at two ends of an emulated link: rate, delay, queue, loss")
        .after_help(AFTER)
        .arg(words)
        .arg(until_eof)
        .args(knob_flags(KNOBS))
}

/// Runs it.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let layers = layers(KNOBS, flags)?;
    if layers.print {
        say(layers);
        return Ok(ExitCode::SUCCESS);
    }
    let shape = shape(&layers)?;
    let port = layers.with("port", |text| {
        text.parse().map_err(|_| "a port is from 1 to 65535".into())
    })?;
    let settle = layers.with("settle", duration)?.unwrap_or_default();
    available().map_err(Stop::Unable)?;
    let bed = Bed::new(shape).map_err(failed)?;
    let (events, mut inbox) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    runtime
        .block_on(async { listen(&events) })
        .map_err(failed)?;
    let standing = bed.standing(&layers);
    announce(&standing)?;
    if let Some(text) = layers.one("server") {
        let child = start(&bed.server, shell(text)).map_err(|error| format!("{text}: {error}"))?;
        report_end(child, &events, Event::Server);
        bed.answering(port.unwrap_or(80), &mut inbox)?;
    }
    let flows = bed.compete(&layers.list("compete"))?;
    if !flows.is_empty() {
        std::thread::sleep(settle);
    }
    let words: Vec<&String> = flags.get_many("command").into_iter().flatten().collect();
    match words.split_first() {
        Some((program, rest)) => bed.command(program, rest, &events)?,
        None => say(line(&standing)?),
    }
    if flags.get_flag("until-eof") {
        until_eof(&events);
    }
    let code = runtime.block_on(until_end(&mut inbox, !words.is_empty()));
    let report = Said {
        report: bed.link.report(),
        competing_bytes: flows.iter().map(Flow::received).collect(),
    };
    drop((flows, bed.guard));
    if let Some(path) = layers.one("json") {
        write(path, &report)?;
    }
    Ok(code)
}

fn failed(error: io::Error) -> String {
    format!("a link could not be made: {error}")
}

/// What a run leaves behind.
#[derive(Serialize)]
struct Said {
    #[serde(flatten)]
    report: Report,
    competing_bytes: Vec<u64>,
}

/// A link, its ends, and who ends what runs there.
struct Bed {
    // Dropped in this order: what runs inside is ended while the link still carries its farewells.
    guard: Guard,
    link: Link,
    client: Namespace,
    server: Namespace,
}

impl Bed {
    fn new(shape: Shape) -> io::Result<Bed> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        let link = Link::start(&client, &server, 0, shape)?;
        let mut guard = Guard::start()?;
        guard.watch(&client)?;
        guard.watch(&server)?;
        Ok(Bed {
            guard,
            link,
            client,
            server,
        })
    }

    /// What is run at the client's end.
    fn command(
        &self,
        program: &str,
        rest: &[&String],
        events: &mpsc::UnboundedSender<Event>,
    ) -> Result<(), Stop> {
        let mut command = std::process::Command::new(program);
        command.args(rest);
        let child = start(&self.client, command).map_err(|error| format!("{program}: {error}"))?;
        report_end(child, events, Event::Command);
        Ok(())
    }

    fn compete(&self, algorithms: &[String]) -> Result<Vec<Flow>, Stop> {
        let start = |name: &String| {
            Flow::start(self.link.addresses()[1], &self.client, &self.server, name)
                .map_err(|error| Stop::Failed(format!("--compete {name}: {error}")))
        };
        algorithms.iter().map(start).collect()
    }

    /// Waits until something answers at the server's end.
    fn answering(&self, port: u16, inbox: &mut mpsc::UnboundedReceiver<Event>) -> Result<(), Stop> {
        let at = SocketAddrV4::new(self.link.addresses()[1], port);
        let failed = |what: &str| {
            let what = format!("the server does not answer on {at}: {what}");
            Ok(Err(Stop::Failed(what)))
        };
        let began = Instant::now();
        let waited = self.server.within(|| {
            while began.elapsed() < SERVER_WAITS {
                if inbox.try_recv().is_ok() {
                    return failed("it or we were told to end");
                }
                if TcpStream::connect_timeout(&at.into(), Duration::from_secs(1)).is_ok() {
                    return Ok(Ok(()));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            failed("30 s have passed")
        });
        waited.map_err(|error| error.to_string())?
    }

    fn standing(&self, layers: &Layers) -> Standing {
        let [at_client, at_server] = self.link.addresses();
        let end = |address: std::net::Ipv4Addr, namespace: &Namespace| End {
            address: address.to_string(),
            netns: namespace.path(),
        };
        let unnamed = || format!("link-{}", std::process::id());
        Standing {
            link: layers.one("name").map_or_else(unnamed, str::to_owned),
            client: end(at_client, &self.client),
            server: end(at_server, &self.server),
        }
    }
}

fn shell(text: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(text);
    command
}

fn start(at: &Namespace, mut command: std::process::Command) -> io::Result<Child> {
    at.within(|| command.spawn())
}

fn write(path: &str, report: &Said) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    if path == "-" {
        say(text + "\n");
        return Ok(());
    }
    std::fs::write(path, text + "\n").map_err(|error| Stop::Failed(format!("{path}: {error}")))
}
