//! Tests the rules of the edge on emulated links. Congestion control, pacing and windows take
//! effect for one response, and are reset afterwards.
//!
//! The link determines the rates, not the machine. The tolerances permit lower rates, because a
//! busy machine sends more slowly.

#![allow(clippy::unwrap_used)]

#[path = "../support/link.rs"]
mod link;

use link::{Bed, SERVER};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_headwater");
const FILM_BYTES: usize = 1 << 20;

/// An origin with a file of one mebibyte behind an edge, both at the server end of a link.
struct LinkedEdge {
    bed: Bed,
    origin: Child,
    edge: Child,
    records: PathBuf,
    /// One-way delay of the link.
    delay_s: f64,
    _folder: tempfile::TempDir,
}

impl LinkedEdge {
    fn new(test: &str, delay_ms: u32, link: &[&str], rules: &str) -> Option<LinkedEdge> {
        let delay = format!("{delay_ms}ms");
        let bed = Bed::start(test, &[&["--delay", &delay], link].concat())?;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("library")).unwrap();
        std::fs::write(at("library").join("film.m4s"), vec![7; FILM_BYTES]).unwrap();
        std::fs::write(at("edge.toml"), rules).unwrap();
        let (library, config, records) = (at("library"), at("edge.toml"), at("edge.jsonl"));
        let origin = format!("{SERVER}:81");
        let origin = start_server(
            &bed,
            &["serve", library.to_str().unwrap(), "--listen", &origin],
        );
        let arguments = [
            "edge",
            "--origin",
            &format!("http://{SERVER}:81"),
            "--listen",
            &format!("{SERVER}:80"),
            "--config",
            config.to_str().unwrap(),
            "--records",
            records.to_str().unwrap(),
            "--tcp-interval",
            "5ms",
        ];
        let edge = start_server(&bed, &arguments);
        Some(LinkedEdge {
            bed,
            origin,
            edge,
            records,
            delay_s: f64::from(delay_ms) / 1000.0,
            _folder: folder,
        })
    }

    /// Fetches paths one after the other on one connection. Returns the rate of each response in
    /// bytes per second. The time is measured from the request to the last byte, minus one
    /// round-trip time.
    fn fetch(&self, paths: &[&str]) -> Vec<f64> {
        let mut curl = self.bed.at_client("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "60"]);
        curl.args(["--write-out", "%{time_pretransfer} %{time_total}\n"]);
        for path in paths {
            curl.args(["--output", "/dev/null", &format!("http://{SERVER}{path}")]);
        }
        let output = curl.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        let rate = |line: &str| {
            let (sent, over) = line.split_once(' ').unwrap();
            let [sent, over] = [sent, over].map(|text| text.parse::<f64>().unwrap());
            FILM_BYTES as f64 / (over - sent - 2.0 * self.delay_s)
        };
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(rate).collect()
    }

    fn metric(&self, line: &str) -> f64 {
        let mut curl = self.bed.at_client("curl");
        let output = curl.args(["--silent", &format!("http://{SERVER}/metrics")]);
        let text = String::from_utf8(output.output().unwrap().stdout).unwrap();
        let found = text.lines().find_map(|row| row.strip_prefix(line));
        found.map_or(0.0, |value| value.trim().parse().unwrap())
    }

    /// Stops all processes and returns the records.
    fn stop(mut self) -> EdgeRecords {
        self.bed.end();
        assert!(self.edge.wait().unwrap().success());
        assert!(self.origin.wait().unwrap().success());
        let text = std::fs::read_to_string(&self.records).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        EdgeRecords(lines.collect())
    }
}

fn start_server(bed: &Bed, arguments: &[&str]) -> Child {
    let mut command = bed.at_server(BINARY);
    let mut child = command
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    child
}

struct EdgeRecords(Vec<Value>);

impl EdgeRecords {
    /// Returns the TCP samples of each response to a path.
    fn tcp_samples(&self, path: &str) -> Vec<Vec<&Value>> {
        let access = |r: &&Value| r["record"] == "access" && r["path"] == path;
        let of = |access: &Value| {
            let same = |r: &&Value| r["record"] == "tcp" && r["request_id"] == access["request_id"];
            self.0.iter().filter(same).collect()
        };
        self.0.iter().filter(access).map(of).collect()
    }
}

fn has_congestion_control(algorithm: &str) -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let there = known.is_ok_and(|known| known.split_whitespace().any(|name| name == algorithm));
    if !there {
        println!("SKIPPED: the kernel does not offer {algorithm}");
    }
    there
}

fn format_rule(path: &str, actions: &str) -> String {
    format!("[[rule]]\nname = \"{path}\"\nwhen = 'query == \"{path}\"'\n{actions}\n\n")
}

/// Reno treats each loss as congestion, but BBR does not.
#[test]
fn bbr_is_faster_than_reno_at_one_percent_loss() {
    if !has_congestion_control("bbr") || !has_congestion_control("reno") {
        return;
    }
    let rules =
        format_rule("bbr", "congestion = \"bbr\"") + &format_rule("reno", "congestion = \"reno\"");
    let link = ["--rate", "20mbit", "--loss", "1%", "--seed", "1"];
    let name = "bbr_is_faster_than_reno_at_one_percent_loss";
    let Some(world) = LinkedEdge::new(name, 20, &link, &rules) else {
        return;
    };
    let [bbr, reno] = ["bbr", "reno"].map(|name| world.fetch(&[&format!("/film.m4s?{name}")])[0]);
    let refused = world.metric("headwater_transport_refused_total{option=\"congestion\"}");
    assert!(refused.abs() < 0.5, "the kernel refuses an algorithm");
    let records = world.stop();
    for query in ["bbr", "reno"] {
        let path = format!("/film.m4s?{query}");
        for sample in records.tcp_samples(&path).concat() {
            assert_eq!(sample["algorithm"], query);
        }
    }
    println!(
        "bbr {bbr:.0} B/s, reno {reno:.0} B/s: {:.1} times",
        bbr / reno
    );
    assert!(bbr >= 1.5 * reno, "bbr {bbr}, reno {reno}");
}

/// The client across the link gets the default algorithm of the system. The local client gets an
/// algorithm without pacing.
#[test]
fn low_rtt_clients_are_not_paced() {
    let name = "low_rtt_clients_are_not_paced";
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    if !default.starts_with("bbr") {
        return println!("SKIPPED {name}: {} does not pace", default.trim());
    }
    let Some(world) = LinkedEdge::new(name, 5, &["--rate", "100mbit"], "") else {
        return;
    };
    world.fetch(&["/film.m4s?far"]);
    let mut curl = world.bed.at_server("curl");
    curl.args(["--silent", "--fail", "--output", "/dev/null"]);
    let near = curl.arg(format!("http://{SERVER}/film.m4s?near"));
    assert!(near.status().unwrap().success());
    let records = world.stop();
    for (query, algorithm) in [("far", default.trim()), ("near", "reno")] {
        let sample = records.tcp_samples(&format!("/film.m4s?{query}")).concat();
        assert!(!sample.is_empty(), "{query}");
        assert!(sample.iter().all(|sample| sample["algorithm"] == algorithm));
    }
}

/// Checks that a rate is between 70 % and 105 % of the pace. The rate may be lower than the pace,
/// because a busy machine sends more slowly.
#[track_caller]
fn assert_paced(rate: f64, pace: f64) {
    let share = rate / pace;
    assert!((0.7..1.05).contains(&share), "{rate} B/s of {pace}");
}

/// Paced and unpaced responses alternate on one connection.
#[test]
fn a_pace_applies_to_its_response_only() {
    const PACE: f64 = 1e6;
    let rules = format_rule("slow", "pace = 8000");
    let name = "a_pace_applies_to_its_response_only";
    let Some(world) = LinkedEdge::new(name, 5, &["--rate", "100mbit"], &rules) else {
        return;
    };
    let paths = ["slow", "free", "slow", "last"].map(|query| format!("/film.m4s?{query}"));
    let rates = world.fetch(&paths.each_ref().map(String::as_str));
    println!("paced at {PACE} B/s, not, paced, not: {rates:.0?}");
    for paced in [rates[0], rates[2]] {
        assert_paced(paced, PACE);
    }
    for free in [rates[1], rates[3]] {
        assert!(free > 1.5 * PACE, "a pace was not reset: {rates:?}");
    }
    let records = world.stop();
    assert_eq!(records.tcp_samples("/film.m4s?slow").len(), 2);
    for (path, paced) in [("slow", true), ("free", false), ("last", false)] {
        for sample in records.tcp_samples(&format!("/film.m4s?{path}")).concat() {
            assert_eq!(sample["connection"], 1, "one connection");
            let most = sample["max_pacing_rate_bytes_per_s"].as_f64().unwrap();
            assert_eq!(most <= PACE, paced, "{path}: {most}");
        }
    }
}

/// As the buffer of a player shrinks, the pace grows from 1.5 times to 3 times the top bitrate of
/// the player.
#[test]
fn the_pace_follows_the_buffer_of_the_player() {
    let rules = "[[rule]]\nname = \"by buffer\"\nwhen = 'has(cmcd.tb)'\n\
                 pace = \"ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb\"\n";
    let name = "the_pace_follows_the_buffer_of_the_player";
    let Some(world) = LinkedEdge::new(name, 5, &["--rate", "100mbit"], rules) else {
        return;
    };
    let cases = [(30_000, 750_000.0), (15_000, 1_125_000.0), (0, 1_500_000.0)];
    let path = |bl: u32| format!("/film.m4s?CMCD=bl%3D{bl}%2Ctb%3D4000");
    let paths = cases.map(|(bl, _)| path(bl));
    let rates = world.fetch(&paths.each_ref().map(String::as_str));
    for ((bl, expected), rate) in cases.into_iter().zip(rates) {
        println!("buffer {bl} ms: {rate:.0} B/s of {expected}");
        assert_paced(rate, expected);
    }
}

/// Only a route can set the initial window. Without such a route, the edge logs and counts that the
/// rule's window has no effect, and still sends the response.
#[test]
fn an_initial_window_needs_a_route() {
    let rules = format_rule("wide", "initial-window = 40");
    let name = "an_initial_window_needs_a_route";
    let Some(world) = LinkedEdge::new(name, 5, &["--rate", "100mbit"], &rules) else {
        return;
    };
    let refused = "headwater_transport_refused_total{option=\"initial-window\"}";
    world.fetch(&["/film.m4s?wide", "/film.m4s?wide"]);
    assert!(
        (world.metric(refused) - 1.0).abs() < 0.5,
        "counted once per connection"
    );
    let mut ip = world.bed.at_server("sh");
    ip.args([
        "-c",
        "ip route change $(ip -4 route show | head -1) initcwnd 40",
    ]);
    if !ip.status().is_ok_and(|status| status.success()) {
        println!("SKIPPED {name}: ip cannot change the route");
        return;
    }
    world.fetch(&["/film.m4s?wide"]);
    assert!(
        (world.metric(refused) - 1.0).abs() < 0.5,
        "the route sets it now"
    );
    let records = world.stop();
    let windows: Vec<_> = records
        .tcp_samples("/film.m4s?wide")
        .iter()
        .map(|sample| sample[0]["cwnd_packets"].as_u64().unwrap())
        .collect();
    assert!(windows[0] < 40 && windows[2] >= 40, "{windows:?}");
}
