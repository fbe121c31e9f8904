//! The edge's rules on emulated links: what they choose takes effect, and is put back.
//!
//! Figures are those of the link, not of the machine: each has a factor or a tenth between it and
//! what would fail.

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

/// An origin with a file of a mebibyte and an edge before it, at the server's end of a link.
struct World {
    bed: Bed,
    origin: Child,
    edge: Child,
    records: PathBuf,
    /// One way.
    delay_s: f64,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(test: &str, delay_ms: u32, link: &[&str], rules: &str) -> Option<World> {
        let delay = format!("{delay_ms}ms");
        let bed = Bed::start(test, &[&["--delay", &delay], link].concat())?;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("library")).unwrap();
        std::fs::write(at("library").join("film.m4s"), vec![7; FILM_BYTES]).unwrap();
        std::fs::write(at("edge.toml"), rules).unwrap();
        let (library, config, records) = (at("library"), at("edge.toml"), at("edge.jsonl"));
        let origin = format!("{SERVER}:81");
        let origin = serve(
            &bed,
            &["serve", library.to_str().unwrap(), "--listen", &origin],
        );
        let words = [
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
        let edge = serve(&bed, &words);
        Some(World {
            bed,
            origin,
            edge,
            records,
            delay_s: f64::from(delay_ms) / 1000.0,
            _folder: folder,
        })
    }

    /// Fetches these on one connection, one after the other. Bytes a second of each, from the
    /// request to the last byte, less the time on the way.
    fn fetch(&self, paths: &[&str]) -> Vec<f64> {
        let mut curl = self.bed.at_client("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "60"]);
        curl.args(["--write-out", "%{time_pretransfer} %{time_total}\n"]);
        for path in paths {
            curl.args(["--output", "/dev/null", &format!("http://{SERVER}{path}")]);
        }
        let output = curl.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
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

    /// Ends all, and gives what was written down.
    fn records(mut self) -> Records {
        self.bed.end();
        assert!(self.edge.wait().unwrap().success());
        assert!(self.origin.wait().unwrap().success());
        let text = std::fs::read_to_string(&self.records).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        Records(lines.collect())
    }
}

fn serve(bed: &Bed, words: &[&str]) -> Child {
    let mut command = bed.at_server(BINARY);
    let mut child = command.args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    child
}

struct Records(Vec<Value>);

impl Records {
    /// What TCP saw of the responses to a path, response by response.
    fn tcp(&self, path: &str) -> Vec<Vec<&Value>> {
        let access = |r: &&Value| r["record"] == "access" && r["path"] == path;
        let of = |access: &Value| {
            let same = |r: &&Value| r["record"] == "tcp" && r["request_id"] == access["request_id"];
            self.0.iter().filter(same).collect()
        };
        self.0.iter().filter(access).map(of).collect()
    }
}

fn has(algorithm: &str) -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let there = known.is_ok_and(|known| known.split_whitespace().any(|name| name == algorithm));
    if !there {
        println!("SKIPPED: this kernel has no {algorithm}");
    }
    there
}

fn rule(path: &str, actions: &str) -> String {
    format!("[[rule]]\nname = \"{path}\"\nwhen = 'query == \"{path}\"'\n{actions}\n\n")
}

/// Reno takes each loss for a full queue, BBR does not.
#[test]
fn where_one_in_a_hundred_is_lost_bbr_is_far_ahead_of_reno() {
    if !has("bbr") || !has("reno") {
        return;
    }
    let rules = rule("bbr", "congestion = \"bbr\"") + &rule("reno", "congestion = \"reno\"");
    let link = ["--rate", "20mbit", "--loss", "1%", "--seed", "1"];
    let name = "where_one_in_a_hundred_is_lost_bbr_is_far_ahead_of_reno";
    let Some(world) = World::new(name, 20, &link, &rules) else {
        return;
    };
    let [bbr, reno] = ["bbr", "reno"].map(|name| world.fetch(&[&format!("/film.m4s?{name}")])[0]);
    let refused = world.metric("headwater_transport_refused_total{option=\"congestion\"}");
    assert!(refused.abs() < 0.5, "the kernel refuses an algorithm");
    let records = world.records();
    for query in ["bbr", "reno"] {
        let path = format!("/film.m4s?{query}");
        for seen in records.tcp(&path).concat() {
            assert_eq!(seen["algorithm"], query);
        }
    }
    println!(
        "bbr {bbr:.0} B/s, reno {reno:.0} B/s: {:.1} times",
        bbr / reno
    );
    assert!(bbr >= 1.5 * reno, "bbr {bbr}, reno {reno}");
}

/// Who is at the far end of the link is sent to as the system does, who is at this one without pacing.
#[test]
fn where_the_system_paces_who_is_near_is_not_paced() {
    let name = "where_the_system_paces_who_is_near_is_not_paced";
    let usual = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    if !usual.starts_with("bbr") {
        return println!("SKIPPED {name}: {} does not pace", usual.trim());
    }
    let Some(world) = World::new(name, 5, &["--rate", "100mbit"], "") else {
        return;
    };
    world.fetch(&["/film.m4s?far"]);
    let mut curl = world.bed.at_server("curl");
    curl.args(["--silent", "--fail", "--output", "/dev/null"]);
    let near = curl.arg(format!("http://{SERVER}/film.m4s?near"));
    assert!(near.status().unwrap().success());
    let records = world.records();
    for (query, algorithm) in [("far", usual.trim()), ("near", "reno")] {
        let seen = records.tcp(&format!("/film.m4s?{query}")).concat();
        assert!(!seen.is_empty(), "{query}");
        assert!(seen.iter().all(|seen| seen["algorithm"] == algorithm));
    }
}

/// On one connection: paced, not paced, paced again.
#[test]
fn a_pace_holds_within_a_twentieth_and_goes_with_its_response() {
    const PACE: f64 = 1e6;
    let rules = rule("slow", "pace = 8000");
    let name = "a_pace_holds_within_a_twentieth_and_goes_with_its_response";
    let Some(world) = World::new(name, 5, &["--rate", "100mbit"], &rules) else {
        return;
    };
    let paths = ["slow", "free", "slow", "last"].map(|query| format!("/film.m4s?{query}"));
    let rates = world.fetch(&paths.each_ref().map(String::as_str));
    println!("paced at {PACE} B/s, not, paced, not: {rates:.0?}");
    for paced in [rates[0], rates[2]] {
        assert!((paced / PACE - 1.0).abs() < 0.05, "{rates:?}");
    }
    for free in [rates[1], rates[3]] {
        assert!(free > 3.0 * PACE, "a pace was left behind: {rates:?}");
    }
    let records = world.records();
    assert_eq!(records.tcp("/film.m4s?slow").len(), 2);
    for (path, paced) in [("slow", true), ("free", false), ("last", false)] {
        for seen in records.tcp(&format!("/film.m4s?{path}")).concat() {
            assert_eq!(seen["connection"], 1, "one connection");
            let most = seen["max_pacing_rate_bytes_per_s"].as_f64().unwrap();
            assert_eq!(most <= PACE, paced, "{path}: {most}");
        }
    }
}

/// The player has a full buffer, then an empty one: half as much again, or three times its bitrate.
#[test]
fn the_pace_follows_the_players_buffer() {
    let rules = "[[rule]]\nname = \"by buffer\"\nwhen = 'has(cmcd.tb)'\n\
                 pace = \"ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb\"\n";
    let name = "the_pace_follows_the_players_buffer";
    let Some(world) = World::new(name, 5, &["--rate", "100mbit"], rules) else {
        return;
    };
    let cases = [(30_000, 750_000.0), (15_000, 1_125_000.0), (0, 1_500_000.0)];
    let path = |bl: u32| format!("/film.m4s?CMCD=bl%3D{bl}%2Ctb%3D4000");
    let paths = cases.map(|(bl, _)| path(bl));
    let rates = world.fetch(&paths.each_ref().map(String::as_str));
    for ((bl, expected), rate) in cases.into_iter().zip(rates) {
        println!("buffer {bl} ms: {rate:.0} B/s of {expected}");
        assert!((rate / expected - 1.0_f64).abs() < 0.05, "{bl}: {rate}");
    }
}

/// Only the route gives it: where it does not, that is said and counted, and all is sent.
#[test]
fn an_initial_window_is_the_routes() {
    let rules = rule("wide", "initial-window = 40");
    let name = "an_initial_window_is_the_routes";
    let Some(world) = World::new(name, 5, &["--rate", "100mbit"], &rules) else {
        return;
    };
    let refused = "headwater_transport_refused_total{option=\"initial-window\"}";
    world.fetch(&["/film.m4s?wide", "/film.m4s?wide"]);
    assert!(
        (world.metric(refused) - 1.0).abs() < 0.5,
        "once a connection"
    );
    let mut ip = world.bed.at_server("sh");
    ip.args([
        "-c",
        "ip route change $(ip -4 route show | head -1) initcwnd 40",
    ]);
    if !ip.status().is_ok_and(|status| status.success()) {
        println!("SKIPPED {name}: no ip to change a route with");
        return;
    }
    world.fetch(&["/film.m4s?wide"]);
    assert!(
        (world.metric(refused) - 1.0).abs() < 0.5,
        "the route gives it now"
    );
    let records = world.records();
    let windows: Vec<_> = records
        .tcp("/film.m4s?wide")
        .iter()
        .map(|seen| seen[0]["cwnd_packets"].as_u64().unwrap())
        .collect();
    assert!(windows[0] < 40 && windows[2] >= 40, "{windows:?}");
}
