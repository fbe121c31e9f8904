//! Sends the tables of hostile requests to nginx and Varnish, which run with default settings and
//! short timeouts.
//!
//! `peers.md` lists the differences between Headwater and these peers, so that the test notices a
//! change of Headwater or of a peer. `make judge` runs this comparison. `UPDATE_DOCUMENTS=1`
//! rewrites the list.

mod servers;

use std::fmt::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::floods::{self, FLOODS, FloodEnd};
use crate::frames::StreamResult::{self, Refused, Status};
use crate::frames::request_on_stream;
use crate::strict::StrictOrigin;
use crate::support::{TempFolder, report_skip};
use crate::{http1, http2, requests, targets};
use servers::PeerServers;

/// Number of rows that are sent at a time. It is high, because most rows wait for a timeout of a
/// peer.
const THREADS: usize = 24;

/// Maximum number of attempts to get the listed result of a row.
const ATTEMPTS: usize = 5;

/// Maximum time to wait for a peer that neither responds nor closes the connection.
const WAIT_MAX: Duration = Duration::from_secs(5);

type Probe = Box<dyn Fn(&SocketAddr, &SocketAddr) -> String + Send + Sync>;

/// A row with its input, and with the results of `serve` and of the edge. The function `probe`
/// sends the input to a peer and returns the result. The parameters of `probe` are the peer's
/// addresses for HTTP/1.1 and HTTP/2.
struct ComparedRow {
    input: String,
    serve: String,
    edge: String,
    probe: Probe,
}

fn connect(address: &SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
    stream
}

fn describe(result: StreamResult) -> String {
    match result {
        Status(status) => status.to_string(),
        Refused => "refused".to_owned(),
    }
}

fn describe_flood(end: FloodEnd) -> String {
    let text = if end == FloodEnd::Closed {
        "closed"
    } else {
        "open"
    };
    text.to_owned()
}

fn list_http1_rows() -> impl Iterator<Item = ComparedRow> {
    http1::list_requests()
        .into_iter()
        .map(|request| ComparedRow {
            input: format!("HTTP/1.1: {}", request.reason),
            serve: request.serve.to_string(),
            edge: request.edge.to_string(),
            probe: Box::new(move |http1, _| {
                let response = http1::send_request(&mut connect(http1), &request.text);
                let status = http1::parse_status(&response);
                describe(status.map_or(Refused, Status))
            }),
        })
}

fn list_http2_rows() -> impl Iterator<Item = ComparedRow> {
    http2::REQUESTS
        .iter()
        .map(|(fields, expected, reason)| ComparedRow {
            input: format!("HTTP/2: {reason}"),
            serve: describe(*expected),
            edge: describe(*expected),
            probe: Box::new(|_, http2| describe(request_on_stream(&mut connect(http2), fields))),
        })
}

fn list_common_rows() -> impl Iterator<Item = ComparedRow> {
    let rows = requests::REQUESTS.iter();
    rows.flat_map(|(method, path, fields, serve, edge, reason)| {
        let row = |name, probe: Probe| ComparedRow {
            input: format!("{name}: {reason}"),
            serve: serve.to_string(),
            edge: edge.to_string(),
            probe,
        };
        [
            row(
                "HTTP/1.1",
                Box::new(|http1, _| {
                    let stream = &mut connect(http1);
                    describe(targets::request_over_http1(stream, method, path, fields))
                }),
            ),
            row(
                "HTTP/2",
                Box::new(|_, http2| {
                    let stream = &mut connect(http2);
                    describe(targets::request_over_http2(stream, method, path, fields))
                }),
            ),
        ]
    })
}

/// Returns the floods after which a server must close the connection.
fn list_flood_rows() -> impl Iterator<Item = ComparedRow> {
    let closing = FLOODS
        .iter()
        .filter(|flood| flood.expected == FloodEnd::Closed);
    closing.map(|flood| ComparedRow {
        input: format!("{FLOOD}{}", flood.name),
        serve: describe_flood(flood.expected),
        edge: describe_flood(flood.expected),
        probe: Box::new(|_, http2| {
            let stream = &mut connect(http2);
            describe_flood(match floods::write_flood(stream, flood) {
                FloodEnd::Open => floods::read_flood_end(stream),
                closed => closed,
            })
        }),
    })
}

/// Returns the table line for a row, or None if the peers' results equal Headwater's results.
fn compare_row(row: &ComparedRow, peers: &PeerServers) -> Option<String> {
    let [file, proxy, varnish] = [&peers.files, &peers.proxy, &peers.varnish]
        .map(|peer| (row.probe)(&peer.http1, &peer.http2));
    let ComparedRow {
        input, serve, edge, ..
    } = row;
    let is_same = *serve == file && *edge == proxy && *edge == varnish;
    (!is_same).then(|| format!("| {input} | {serve} | {file} | {edge} | {proxy} | {varnish} |"))
}

/// Compares a row, and repeats the comparison if the result differs from the list. A result can
/// vary, because a response can be lost if the peer closes the connection while the client writes.
fn compare_repeatedly(row: &ComparedRow, peers: &PeerServers, listed: &str) -> Option<String> {
    let mut line = compare_row(row, peers);
    for _ in 1..ATTEMPTS {
        let is_listed = match &line {
            Some(line) => listed.contains(line),
            None => !listed.contains(&format!("| {} |", row.input)),
        };
        if is_listed {
            break;
        }
        line = compare_row(row, peers);
    }
    line
}

/// Returns the lines of the table. Equal lines of several rows are listed once.
fn compare_all(peers: &PeerServers, listed: &str) -> Vec<String> {
    let rows: Vec<ComparedRow> = list_http1_rows()
        .chain(list_http2_rows())
        .chain(list_common_rows())
        .chain(list_flood_rows())
        .collect();
    let lines = Mutex::new(vec![None; rows.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((number, row)) = {
                    let number = next.fetch_add(1, Relaxed);
                    rows.get(number).map(|row| (number, row))
                } {
                    let line = compare_repeatedly(row, peers, listed);
                    lines.lock().unwrap()[number] = line;
                }
            });
        }
    });
    let mut unique: Vec<String> = Vec::new();
    for line in lines.into_inner().unwrap().into_iter().flatten() {
        if !unique.contains(&line) {
            unique.push(line);
        }
    }
    unique
}

/// Start of each flood's line. Whether a peer closes the connection depends on how fast the peer
/// reads the flood. A difference is therefore printed, but the test does not fail.
const FLOOD: &str = "HTTP/2 flood: ";

/// Returns the lines of `from` that `other` lacks. The lines of floods are in the second list.
fn list_missing<'a>(from: &'a str, other: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let missing = from.lines().filter(|line| !other.contains(line));
    missing.partition(|line| !line.contains(FLOOD))
}

const INTRODUCTION: &str = "# Differences from nginx and Varnish under attack

`tests/hostile` sends its tables to nginx 1.22 (files, and as a cache) and Varnish 7.1 with their packages' defaults
and short timeouts. This list contains the rows whose results differ from those of `headwater serve` and `headwater
edge`. `refused` is a closed connection or a reset stream without a status. `make judge` fails if a result changes,
except those of floods, which depend on how fast the peer reads;
`UPDATE_DOCUMENTS=1 cargo test --test hostile -- --ignored` rewrites the list.

| input | serve | nginx, files | edge | nginx, cache | Varnish |
|---|---|---|---|---|---|
";

#[test]
#[ignore = "compares with other programs: make judge"]
fn every_difference_from_nginx_and_varnish_is_listed() {
    let folder = TempFolder::new();
    targets::write_library(&folder);
    let origin = StrictOrigin::new();
    let Some(peers) = PeerServers::start(&folder.0, origin.address) else {
        return report_skip("varnishd or nginx is not installed; run scripts/install.sh test");
    };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/peers.md");
    let listed = std::fs::read_to_string(path).unwrap_or_default();
    let mut text = INTRODUCTION.to_owned();
    for line in compare_all(&peers, &listed) {
        writeln!(text, "{line}").unwrap();
    }
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, &text).unwrap();
        return;
    }
    let (new, new_floods) = list_missing(&text, &listed);
    let (gone, gone_floods) = list_missing(&listed, &text);
    println!("floods with other results than listed: {new_floods:?} instead of {gone_floods:?}");
    assert!(
        new.is_empty() && gone.is_empty(),
        "tests/hostile/peers.md lacks:\n{}\nand lists what is no longer so:\n{}",
        new.join("\n"),
        gone.join("\n")
    );
}
