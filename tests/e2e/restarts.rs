//! Tests rolling restarts under load: no connection is refused, no response is truncated, and no
//! byte is wrong.

use crate::support::{HeadwaterServer, TempFolder, report_skip};
use load::{LoadCounts, RunningLoad};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

mod disk_tier;
mod load;
mod open_loop;
mod tls;

const ROLLING_RESTARTS: usize = 20;
/// Minimum number of responses over each protocol between two restarts.
const RESPONSES_BETWEEN: u64 = 60;

/// A library, and a path for the socket over which a process hands its ports to its successor.
struct RestartSetup {
    folder: TempFolder,
}

impl RestartSetup {
    fn new() -> RestartSetup {
        let folder = TempFolder::new();
        for target in load::TARGETS {
            let name = format!("films{target}");
            folder.write_file(&name, &load::make_body(target));
        }
        RestartSetup { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.0.join(name).display().to_string()
    }

    fn handover_socket(&self) -> String {
        self.path("handover.sock")
    }

    /// Writes a new self-signed certificate and its key. Returns the flags that name both files.
    fn write_certificate(&self) -> [String; 4] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let write = |name, pem: &str| self.folder.write_file(name, pem.as_bytes());
        let cert = write("cert.pem", &made.cert.pem()).display().to_string();
        let key = write("key.pem", &made.signing_key.serialize_pem());
        let key = key.display().to_string();
        ["--tls-cert".into(), cert, "--tls-key".into(), key]
    }

    fn start_origin(&self) -> HeadwaterServer {
        let socket = self.handover_socket();
        HeadwaterServer::serve(&[&self.path("films"), "--handover-socket", &socket])
    }

    fn start_edge(&self, origin: &HeadwaterServer) -> HeadwaterServer {
        let (url, socket, disk) = (origin.url(""), self.handover_socket(), self.path("disk"));
        let flags = ["--origin", &url, "--handover-socket", &socket];
        let flags = [&flags[..], &["--disk-dir", &disk]].concat();
        HeadwaterServer::start_program("edge", &flags)
    }
}

/// Replaces a process repeatedly while clients send requests.
fn roll_under_load(start: impl Fn() -> HeadwaterServer) -> HeadwaterServer {
    let mut current = start();
    let load = RunningLoad::start(current.addr);
    for round in 0..ROLLING_RESTARTS {
        load.wait_for_responses(RESPONSES_BETWEEN);
        let next = start();
        assert_eq!(next.addr, current.addr, "round {round}");
        assert_eq!(current.wait_for_exit(), Some(0), "round {round}");
        current = next;
    }
    load.wait_for_responses(RESPONSES_BETWEEN);
    assert_nothing_failed(&load.stop());
    current
}

fn assert_nothing_failed(counts: &LoadCounts) {
    assert_eq!(
        counts.failures(),
        (0, 0, 0),
        "refused, cut, wrong: {counts:?}"
    );
    assert!(counts.http1() > 0 && counts.http2() > 0, "{counts:?}");
}

#[test]
fn rolling_restarts_of_the_origin_lose_no_request() {
    let setup = RestartSetup::new();
    roll_under_load(|| setup.start_origin());
}

#[test]
fn rolling_restarts_of_the_edge_lose_no_request() {
    let setup = RestartSetup::new();
    let origin = HeadwaterServer::serve(&[&setup.path("films")]);
    let edge = roll_under_load(|| setup.start_edge(&origin));
    // Only one process at a time uses the disk folder. The last process takes over the folder soon
    // after its predecessor has exited.
    let line = "headwater_cache_disk_objects ";
    let objects = || -> u64 {
        let metrics = edge.get_text("/metrics");
        let value = metrics.lines().find_map(|one| one.strip_prefix(line));
        value.unwrap().parse().unwrap()
    };
    while objects() == 0 {
        std::thread::yield_now();
    }
}

/// Requests the sockets as a successor does. Returns the connection and the last message of the
/// running process.
fn take_ports(setup: &RestartSetup, program: &str) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(setup.handover_socket()).unwrap();
    writeln!(stream, "take 1 {program}").unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let last = lines.find_map(|line| {
        let line = line.unwrap();
        (line == "end" || line.starts_with("refused")).then_some(line)
    });
    (stream, last.unwrap())
}

#[test]
fn a_successor_that_fails_or_is_another_program_leaves_the_process_alone() {
    let setup = RestartSetup::new();
    let mut first = setup.start_origin();
    let (other, last) = take_ports(&setup, "edge");
    assert!(last.starts_with("refused expected"), "{last}");
    drop(other);
    let (failing, last) = take_ports(&setup, "serve");
    assert_eq!(last, "end");
    drop(failing);
    assert_eq!(first.get_text("/readyz"), "ready\n");
    let second = setup.start_origin();
    assert_eq!(second.addr, first.addr);
    assert_eq!(first.wait_for_exit(), Some(0));
    assert_eq!(second.get_text("/readyz"), "ready\n");
}

#[test]
fn a_killed_process_leaves_no_obstacle() {
    let setup = RestartSetup::new();
    // Dropping the server kills the process. The file of the process's handover socket therefore
    // remains.
    drop(setup.start_origin());
    assert_eq!(setup.start_origin().get_text("/readyz"), "ready\n");
}

/// Starts a program with a listening socket as descriptor 3, as a service manager does.
fn start_activated(listener: &TcpListener, args: &[&str]) -> HeadwaterServer {
    let mut command = Command::new("sh");
    let activate = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0";
    command.args(["-c", activate, env!("CARGO_BIN_EXE_headwater")]);
    command.stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())));
    HeadwaterServer::spawn(command, "serve", args)
}

/// Each process starts after the previous process has exited, as with `systemctl restart`.
#[test]
fn restarts_with_an_activated_socket_lose_no_request() {
    let setup = RestartSetup::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let films = setup.path("films");
    let start = || start_activated(&listener, &[&films, "--workers", "3"]);
    let mut current = start();
    assert_eq!(current.addr, listener.local_addr().unwrap());
    let load = RunningLoad::start(current.addr);
    for round in 0..5 {
        load.wait_for_responses(RESPONSES_BETWEEN);
        assert_eq!(current.terminate(), Some(0), "round {round}");
        current = start();
    }
    load.wait_for_responses(RESPONSES_BETWEEN);
    assert_nothing_failed(&load.stop());
}

#[test]
fn systemd_socket_activate_starts_the_origin_with_its_socket() {
    let tool = "systemd-socket-activate";
    if Command::new(tool).arg("--version").output().is_err() {
        return report_skip(&format!("{tool} is not installed"));
    }
    let setup = RestartSetup::new();
    let address = SocketAddr::from(([127, 0, 0, 1], crate::nginx::port::free()));
    let mut command = Command::new(tool);
    command.args(["-l", &address.to_string(), env!("CARGO_BIN_EXE_headwater")]);
    // The tool starts the program when the first client connects.
    let client = std::thread::spawn(move || {
        let mut stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(_) => std::thread::yield_now(),
            }
        };
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    });
    let mut origin = HeadwaterServer::spawn(command, "serve", &[&setup.path("films")]);
    assert_eq!(origin.addr, address);
    let response = client.join().unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    for target in load::TARGETS {
        assert!(origin.get_body(target) == load::make_body(target));
    }
    assert_eq!(origin.terminate(), Some(0));
}

#[test]
fn a_descriptor_that_is_no_listener_is_an_error() {
    let (one, _other) = UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    let activate = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve 3<&0";
    command.args(["-c", activate, env!("CARGO_BIN_EXE_headwater")]);
    command.stdin(Stdio::from(OwnedFd::from(one)));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not a listening TCP socket"), "{text}");
}
