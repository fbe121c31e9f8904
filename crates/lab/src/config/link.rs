//! `headwater lab link`.

use super::exec::{End, Standing, announce, line};
use super::shape::{SHAPE, shape};
use super::{GUARD, Stop, layers};
use crate::link::{Guard, Link, Namespace, Report, available};
use clap::{Arg, ArgAction, ArgMatches, Command};
use net::config::{Knob, Layers, flags as knob_flags};
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
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

/// What ends a run.
enum Event {
    Command(io::Result<ExitStatus>),
    Server(io::Result<ExitStatus>),
    Asked,
}

/// Runs it.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let layers = layers(KNOBS, flags)?;
    if layers.print {
        print!("{layers}");
        return Ok(ExitCode::SUCCESS);
    }
    let shape = shape(&layers)?;
    let port = layers.with("port", |text| {
        text.parse().map_err(|_| "a port is from 1 to 65535".into())
    })?;
    available().map_err(Stop::Unable)?;
    let failed = |error: io::Error| format!("a link could not be made: {error}");
    let words: Vec<&String> = flags.get_many("command").into_iter().flatten().collect();

    // Dropped in reverse: first the guard, which ends what runs inside, then the link.
    let client = Namespace::new().map_err(failed)?;
    let server = Namespace::new().map_err(failed)?;
    let link = Link::start(&client, &server, 0, shape).map_err(failed)?;
    let mut guard = Guard::start(&["lab", GUARD]).map_err(failed)?;
    guard.watch(&client).map_err(failed)?;
    guard.watch(&server).map_err(failed)?;

    let (events, mut inbox) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    runtime
        .block_on(async { listen(&events) })
        .map_err(failed)?;
    let standing = standing(&layers, &link, &client, &server);
    announce(&standing)?;
    if let Some(text) = layers.one("server") {
        let child = start(&server, shell(text)).map_err(|error| format!("{text}: {error}"))?;
        report_end(child, &events, Event::Server);
        let at = SocketAddrV4::new(link.addresses()[1], port.unwrap_or(80));
        answering(&server, at, &mut inbox)?;
    }
    if let Some((program, rest)) = words.split_first() {
        let mut command = std::process::Command::new(program);
        command.args(rest);
        let child = start(&client, command).map_err(|error| format!("{program}: {error}"))?;
        report_end(child, &events, Event::Command);
    } else {
        print!("{}", line(&standing)?);
        let _ = io::stdout().flush();
    }
    if flags.get_flag("until-eof") {
        until_eof(&events);
    }
    let code = runtime.block_on(until_end(&mut inbox, !words.is_empty()));
    let report = link.report();
    drop(guard);
    if let Some(path) = layers.one("json") {
        write(path, &report)?;
    }
    Ok(code)
}

/// Until the command ends; without one, until asked to end.
async fn until_end(inbox: &mut mpsc::UnboundedReceiver<Event>, with_command: bool) -> ExitCode {
    while let Some(event) = inbox.recv().await {
        match event {
            Event::Command(Ok(status)) => {
                return ExitCode::from(status.code().map_or(1, |code| code as u8));
            }
            Event::Command(Err(_)) => return ExitCode::FAILURE,
            Event::Server(end) => {
                let end = end.map_or_else(|error| error.to_string(), |status| status.to_string());
                eprintln!("headwater lab: the server has ended: {end}");
            }
            Event::Asked if with_command => return ExitCode::from(130),
            Event::Asked => return ExitCode::SUCCESS,
        }
    }
    ExitCode::FAILURE
}

fn standing(layers: &Layers, link: &Link, client: &Namespace, server: &Namespace) -> Standing {
    let [at_client, at_server] = link.addresses();
    let end = |address: std::net::Ipv4Addr, namespace: &Namespace| End {
        address: address.to_string(),
        netns: namespace.path(),
    };
    let unnamed = || format!("link-{}", std::process::id());
    Standing {
        link: layers.one("name").map_or_else(unnamed, str::to_owned),
        client: end(at_client, client),
        server: end(at_server, server),
    }
}

/// SIGTERM and Ctrl-C become events.
fn listen(events: &mpsc::UnboundedSender<Event>) -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut signals, events) = (signal(kind)?, events.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = events.send(Event::Asked);
            }
        });
    }
    Ok(())
}

fn shell(text: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(text);
    command
}

fn start(at: &Namespace, mut command: std::process::Command) -> io::Result<Child> {
    at.within(|| command.spawn())
}

fn report_end(
    mut child: Child,
    events: &mpsc::UnboundedSender<Event>,
    as_event: fn(io::Result<ExitStatus>) -> Event,
) {
    let events = events.clone();
    std::thread::spawn(move || events.send(as_event(child.wait())));
}

fn until_eof(events: &mpsc::UnboundedSender<Event>) {
    let events = events.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        events.send(Event::Asked)
    });
}

/// Waits until something answers at the server's end.
fn answering(
    server: &Namespace,
    at: SocketAddrV4,
    inbox: &mut mpsc::UnboundedReceiver<Event>,
) -> Result<(), Stop> {
    let began = Instant::now();
    let failed = |what: &str| Stop::Failed(format!("the server does not answer on {at}: {what}"));
    server
        .within(|| {
            while began.elapsed() < SERVER_WAITS {
                if inbox.try_recv().is_ok() {
                    return Ok(Err(failed("it or we were told to end")));
                }
                if TcpStream::connect_timeout(&at.into(), Duration::from_secs(1)).is_ok() {
                    return Ok(Ok(()));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(Err(failed("30 s have passed")))
        })
        .map_err(|error| error.to_string())?
}

fn write(path: &str, report: &Report) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    if path == "-" {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(path, text + "\n").map_err(|error| Stop::Failed(format!("{path}: {error}")))
}
