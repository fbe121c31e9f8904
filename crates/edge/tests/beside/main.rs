//! Compares the edge with Varnish and nginx's `proxy_cache`. All three use their default settings,
//! except that nginx also revalidates (`proxy_cache_revalidate`).
//!
//! `docs/edge-beside.md` lists the differences with their reasons. The test fails if it finds an
//! unlisted difference, or if a listed difference no longer exists.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
#[path = "../../../../tests/support/peer_process.rs"]
mod peer_process;
mod peers;
#[path = "../support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cases::{CASES, ExchangeCase};
use support::{OriginExchange, RawClient, ScriptedOrigin, TestEdge};

const LISTED: &str = include_str!("../../../../docs/edge-beside.md");

/// Requests that reached the origin, in order. An entry is the target, and whether the request was
/// conditional.
type RequestLog = Arc<Mutex<Vec<(String, bool)>>>;

/// Starts an origin. The target of a request contains the number of the case that defines the
/// response. The response body contains the number of requests for the target so far.
fn start_origin() -> (SocketAddr, RequestLog) {
    let requests: RequestLog = Arc::default();
    let seen = requests.clone();
    let (address, _) = ScriptedOrigin::start_with(move |exchange: &OriginExchange| {
        let target = exchange.target().to_owned();
        let number: Option<usize> = target.split('/').nth(2).and_then(|n| n.parse().ok());
        let Some(case) = number.and_then(|number| CASES.get(number)) else {
            return (200, vec!["Cache-Control: no-store".into()], Vec::new());
        };
        let tag = exchange.header("if-none-match");
        let date = exchange.header("if-modified-since");
        let mut seen = seen.lock().unwrap();
        seen.push((target.clone(), tag.is_some() || date.is_some()));
        let lines: Vec<String> = case
            .response
            .iter()
            .map(|line| cases::resolve_date(line))
            .collect();
        let before = seen.iter().filter(|(other, _)| *other == target).count();
        match tag {
            Some("\"1\"") => (304, lines, Vec::new()),
            _ => (case.status, lines, format!("body {before}").into_bytes()),
        }
    });
    (address, requests)
}

/// Sends the two requests of a case through a server. Describes the responses that the client got
/// and the requests that the origin got.
fn observe_case(
    server: &str,
    address: SocketAddr,
    requests: &RequestLog,
    number: usize,
    settle: impl Fn(),
) -> String {
    let case = &CASES[number];
    let target = format!("/{server}/{number}");
    // Both requests use the same connection, so that nginx finishes the first request before
    // reading the second request.
    let mut client = RawClient::connect_to(address);
    let mut seen = Vec::new();
    for (method, lines) in [("GET", case.first), (case.method, case.second)] {
        client.send(method, &target, lines);
        let response = client.read_response(method);
        let body = if response.status < 300 && method == "GET" {
            format!(" {:?}", response.text())
        } else {
            String::new()
        };
        seen.push(format!("{}{body}", response.status));
        settle();
    }
    let requests = requests.lock().unwrap();
    let conditional: Vec<bool> = requests
        .iter()
        .filter(|(other, _)| *other == target)
        .map(|(_, condition)| *condition)
        .collect();
    let what = match conditional.as_slice() {
        [] => "not fetched",
        [_] => "fetched once",
        [_, true] => "revalidated",
        [_, ..] => "fetched again",
    };
    format!("{}, {what}", seen.join(", "))
}

/// Formats a row of the table in `docs/edge-beside.md`. The failure message of the test contains
/// the rows that are missing from the table, so that these rows can be copied.
fn format_row(case: &ExchangeCase, seen: &[String; 3]) -> String {
    let quoted = |lines: &[&str]| match lines {
        [] => "–".to_owned(),
        lines => format!("`{}`", lines.join("`, `")),
    };
    let [ours, varnish, nginx] = seen;
    format!(
        "| {} | {} {} | {} | {} {} | {ours} | {varnish} | {nginx} |",
        case.name,
        case.status,
        quoted(case.response),
        quoted(case.first),
        case.method,
        quoted(case.second),
    )
}

#[test]
fn every_difference_to_varnish_and_nginx_is_listed() {
    let (address, requests) = start_origin();
    let folder = tempfile::tempdir().unwrap();
    let (Some(varnish), Some(nginx)) = (
        peers::varnish(folder.path(), address),
        peers::nginx(folder.path(), address),
    ) else {
        println!("SKIPPED: varnishd or nginx is missing; scripts/install.sh test installs them");
        return;
    };
    let edge = TestEdge::new(address, &[]);
    let mut unlisted = Vec::new();
    let mut rows = 0;
    for (number, case) in CASES.iter().enumerate() {
        let look = |server, address| observe_case(server, address, &requests, number, || {});
        let settle = || edge.wait_for_metric("headwater_cache_flights", 0);
        let seen = [
            observe_case("headwater", edge.address, &requests, number, settle),
            look("varnish", varnish.address),
            look("nginx", nginx.address),
        ];
        if seen.iter().all(|other| *other == seen[0]) {
            continue;
        }
        rows += 1;
        let row = format_row(case, &seen);
        let reason = LISTED.lines().find_map(|line| line.strip_prefix(&row));
        if reason.is_none_or(|reason| reason.len() <= 10) {
            unlisted.push(row);
        }
    }
    assert!(
        unlisted.is_empty(),
        "docs/edge-beside.md does not list, with a reason:\n{}",
        unlisted.join("\n")
    );
    let listed = LISTED.lines().filter(|line| line.starts_with("| ")).count() - 1;
    assert_eq!(
        listed, rows,
        "docs/edge-beside.md lists a difference that no longer exists"
    );
}
