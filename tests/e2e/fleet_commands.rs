//! Tests commands that reach all edges through a real NATS server.

use crate::support::{HeadwaterServer, TempFolder, report_skip};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Maximum time of every wait.
const WAIT_MAX: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef";

/// A NATS server that requires a token. The server is killed when dropped.
struct NatsServer {
    process: Child,
    address: SocketAddr,
}

impl NatsServer {
    /// Returns `None` and reports a skipped test if nats-server is not installed.
    fn start(folder: &TempFolder, with_jetstream: bool) -> Option<NatsServer> {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/nats/bin/nats-server");
        if !server.exists() {
            report_skip("no nats-server; run scripts/nats.sh to install it");
            return None;
        }
        let address = SocketAddr::from(([127, 0, 0, 1], crate::nginx::port::free()));
        let mut command = Command::new(server);
        command.args(["-a", "127.0.0.1", "-p", &address.port().to_string()]);
        command.args(["--auth", TOKEN]);
        if with_jetstream {
            command.arg("-js").arg("-sd").arg(folder.0.join("stream"));
        }
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = quiet.spawn().unwrap();
        wait_until("nats-server listens", || {
            TcpStream::connect(address).is_ok()
        });
        Some(NatsServer { process, address })
    }

    fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Publishes any payload, including invalid commands.
    fn publish(&self, subject: &str, payload: &str) {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("INFO"));
        let connect = format!("CONNECT {{\"verbose\":false,\"auth_token\":\"{TOKEN}\"}}\r\n");
        let publish = format!("PUB {subject} {}\r\n{payload}\r\nPING\r\n", payload.len());
        (&stream)
            .write_all((connect + &publish).as_bytes())
            .unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "PONG");
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(
            started.elapsed() < WAIT_MAX,
            "{what}: not within {WAIT_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An origin, a NATS server, and a folder for two edges.
struct Fleet {
    folder: TempFolder,
    origin: HeadwaterServer,
    nats: NatsServer,
}

impl Fleet {
    fn new(with_jetstream: bool) -> Option<Fleet> {
        let folder = TempFolder::new();
        folder.write_file("token", TOKEN.as_bytes());
        folder.write_file("films/a.bin", b"first");
        folder.write_file("films/b.bin", b"other");
        let nats = NatsServer::start(&folder, with_jetstream)?;
        let films = folder.0.join("films");
        let origin = HeadwaterServer::serve(&[films.to_str().unwrap()]);
        Some(Fleet {
            folder,
            origin,
            nats,
        })
    }

    fn path(&self, name: &str) -> String {
        self.folder.0.join(name).display().to_string()
    }

    /// Starts an edge that caches every response for an hour, in memory and on disk.
    fn start_edge(&self, name: &str) -> HeadwaterServer {
        let settings = "[[rule]]\nwhen = 'true'\nttl = \"1h\"\n";
        let settings = self.folder.write_file("edge.toml", settings.as_bytes());
        let (origin, nats) = (self.origin.url(""), self.nats.url());
        let (token, disk) = (self.path("token"), self.path(&format!("disk-{name}")));
        let flags = ["--origin", &origin, "--nats", &nats, "--node-name", name];
        let flags = [&flags[..], &["--nats-token-file", &token]].concat();
        let more = ["--disk-dir", &disk, "--config", settings.to_str().unwrap()];
        let edge = HeadwaterServer::start_program("edge", &[&flags[..], &more].concat());
        let line = "headwater_fleet_connected ";
        wait_until("the edge is connected", || read_metric(&edge, line) == 1);
        edge
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let token = self.path("token");
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.arg("edge").args(arguments);
        command.args(["--nats", &self.nats.url(), "--nats-token-file", &token]);
        command.output().unwrap()
    }

    /// Sends a command repeatedly until both edges have responded. A connected edge may not have
    /// subscribed yet, and then misses the command. Returns the results of the last attempt, sorted
    /// by edge.
    fn command_both(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let mut results = Vec::new();
        wait_until("both edges respond", || {
            let output = self.command(&[arguments, &["--edges", "2", "--wait", "10s"]].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            results = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            output.status.success()
        });
        results.sort_by_key(|result: &serde_json::Value| result["edge"].to_string());
        results
    }

    /// Changes a film under the same name. An edge serves the new content only after a new fetch.
    fn change_film(&self, name: &str, text: &str) {
        self.folder
            .write_file(&format!("films/{name}"), text.as_bytes());
    }
}

fn read_metric(edge: &HeadwaterServer, line: &str) -> u64 {
    let metrics = edge.get_text("/metrics");
    let value = metrics.lines().find_map(|one| one.strip_prefix(line));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

fn count_commands(edge: &HeadwaterServer, command: &str, result: &str) -> u64 {
    let labels = format!("command=\"{command}\",result=\"{result}\"");
    read_metric(
        edge,
        &format!("headwater_fleet_commands_total{{{labels}}} "),
    )
}

fn wait_for_commands(edge: &HeadwaterServer, command: &str, result: &str, count: u64) {
    wait_until(&format!("{count} {command} {result}"), || {
        count_commands(edge, command, result) == count
    });
}

fn check_all_commands(with_jetstream: bool) {
    let Some(fleet) = Fleet::new(with_jetstream) else {
        return;
    };
    // NATS does not allow dots in the names of consumers. The edges still need two consumers.
    let edges = ["edge.a", "edge_a"].map(|name| fleet.start_edge(name));
    let names = |results: &[serde_json::Value]| -> Vec<String> {
        let name = |result: &serde_json::Value| result["edge"].as_str().unwrap().to_owned();
        results.iter().map(name).collect()
    };
    // The first command is repeated until both edges have subscribed.
    let results = fleet.command_both(&["reload"]);
    assert_eq!(names(&results), ["edge.a", "edge_a"]);
    for edge in &edges {
        assert_eq!(edge.get_text("/a.bin"), "first");
    }
    fleet.change_film("a.bin", "second");
    for edge in &edges {
        assert_eq!(edge.get_text("/a.bin"), "first", "cached");
    }
    let results = fleet.command_both(&["purge", "--url", "/a.bin"]);
    assert_eq!(names(&results), ["edge.a", "edge_a"]);
    for edge in &edges {
        assert_eq!(edge.get_text("/a.bin"), "second");
    }
    let results = fleet.command_both(&["warm", "b.bin", "--base", "/"]);
    for result in &results {
        assert_eq!(result["result"]["fetched"], 1, "{result}");
    }
    fleet.change_film("b.bin", "third");
    for edge in &edges {
        assert_eq!(edge.get_text("/b.bin"), "other", "warmed before the change");
        assert_eq!(count_commands(edge, "warm", "ok"), 1);
    }
    fleet.command_both(&["purge", "--prefix", "/", "--soft"]);
    for edge in &edges {
        assert_eq!(edge.get_text("/b.bin"), "third", "revalidated");
    }
}

#[test]
fn all_edges_execute_commands_of_a_stream() {
    check_all_commands(true);
}

#[test]
fn all_edges_execute_commands_without_a_stream() {
    check_all_commands(false);
}

#[test]
fn a_command_that_arrives_twice_is_executed_once() {
    let Some(fleet) = Fleet::new(true) else {
        return;
    };
    let edges = ["one", "two"].map(|name| fleet.start_edge(name));
    fleet.command_both(&["reload"]);
    for _ in 0..2 {
        fleet
            .nats
            .publish("headwater.edge.purge", "{\"id\":\"7\",\"prefix\":\"/\"}");
    }
    for edge in &edges {
        wait_for_commands(edge, "purge", "duplicate", 1);
        assert_eq!(count_commands(edge, "purge", "ok"), 1);
    }
}

#[test]
fn an_edge_that_was_away_executes_the_commands_of_its_absence_once() {
    let Some(fleet) = Fleet::new(true) else {
        return;
    };
    let mut one = fleet.start_edge("one");
    let two = fleet.start_edge("two");
    fleet.command_both(&["reload"]);
    // The second request writes the object to disk, so that the object survives the restart.
    for _ in 0..3 {
        assert_eq!(one.get_text("/a.bin"), "first");
    }
    let objects = "headwater_cache_disk_objects ";
    wait_until("the object is on disk", || read_metric(&one, objects) == 1);
    assert_eq!(one.terminate(), Some(0));
    fleet.change_film("a.bin", "second");
    let output = fleet.command(&["purge", "--url", "/a.bin", "--edges", "1"]);
    assert!(output.status.success(), "{output:?}");
    wait_for_commands(&two, "purge", "ok", 1);
    let one = fleet.start_edge("one");
    wait_for_commands(&one, "purge", "ok", 1);
    assert_eq!(one.get_text("/a.bin"), "second");
    // The edge acknowledged the reload before it was stopped. After the restart, it does not
    // execute the reload again.
    assert_eq!(count_commands(&one, "reload", "ok"), 0);
}

#[test]
fn commands_that_cannot_be_parsed_are_refused_and_counted() {
    let Some(fleet) = Fleet::new(true) else {
        return;
    };
    let edges = ["one", "two"].map(|name| fleet.start_edge(name));
    fleet.command_both(&["reload"]);
    fleet.nats.publish("headwater.edge.purge", "no JSON");
    fleet
        .nats
        .publish("headwater.edge.purge", "{\"id\":\"8\",\"all\":true}");
    fleet.nats.publish("headwater.edge.drop", "{\"id\":\"9\"}");
    for edge in &edges {
        wait_for_commands(edge, "purge", "refused", 2);
        wait_for_commands(edge, "unknown", "refused", 1);
        assert_eq!(count_commands(edge, "purge", "ok"), 0);
    }
    let output = fleet.command(&["purge"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("exactly one of url, prefix and tag"),
        "{errors}"
    );
}

#[test]
fn a_wrong_token_is_refused_and_the_edge_serves_on() {
    let Some(fleet) = Fleet::new(false) else {
        return;
    };
    fleet.folder.write_file("token", b"fedcba9876543210");
    let (origin, nats) = (fleet.origin.url(""), fleet.nats.url());
    let token = fleet.path("token");
    let flags = [
        "--origin",
        &origin,
        "--nats",
        &nats,
        "--nats-token-file",
        &token,
    ];
    let edge = HeadwaterServer::start_program("edge", &flags);
    assert_eq!(edge.get_text("/a.bin"), "first");
    assert_eq!(read_metric(&edge, "headwater_fleet_connected "), 0);
    let output = fleet.command(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("authorization violation"), "{errors}");
    assert!(!errors.contains("fedcba"), "{errors}");
}
