//! The same exchanges through our edge, Varnish and nginx's `proxy_cache`, each as it comes. Where they
//! do not all do the same, `docs/edge-beside.md` lists it with the reason; this fails for a difference
//! that is not there, and for one that is there no more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
mod peers;
#[path = "../support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cases::{CASES, Case};
use support::{Client, Edge, Exchange, Origin};

const LISTED: &str = include_str!("../../../../docs/edge-beside.md");

/// What the origin was asked for, in order: target, and whether with a condition.
type Asked = Arc<Mutex<Vec<(String, bool)>>>;

/// Answers by the case that the target names; a body tells how often it was asked before.
fn origin() -> (SocketAddr, Asked) {
    let asked: Asked = Arc::default();
    let seen = asked.clone();
    let (address, _) = Origin::answering(move |exchange: &Exchange| {
        let target = exchange.target().to_owned();
        let number: Option<usize> = target.split('/').nth(2).and_then(|n| n.parse().ok());
        let Some(case) = number.and_then(|number| CASES.get(number)) else {
            return (200, vec!["Cache-Control: no-store".into()], Vec::new());
        };
        let tag = exchange.header("if-none-match");
        let date = exchange.header("if-modified-since");
        let mut seen = seen.lock().unwrap();
        seen.push((target.clone(), tag.is_some() || date.is_some()));
        let lines: Vec<String> = case.answer.iter().map(|line| cases::dated(line)).collect();
        let before = seen.iter().filter(|(other, _)| *other == target).count();
        match tag {
            Some("\"1\"") => (304, lines, Vec::new()),
            _ => (case.status, lines, format!("body {before}").into_bytes()),
        }
    });
    (address, asked)
}

/// What a cache made of a case's two requests: what the client got, and what the origin was asked.
fn observe(
    server: &str,
    address: SocketAddr,
    asked: &Asked,
    number: usize,
    settle: impl Fn(),
) -> String {
    let case = &CASES[number];
    let target = format!("/{server}/{number}");
    // One connection: nginx has finished with the first answer when it reads the second request.
    let mut client = Client::to(address);
    let mut seen = Vec::new();
    for (method, lines) in [("GET", case.first), (case.method, case.second)] {
        client.send(method, &target, lines);
        let answer = client.answer(method);
        let body = if answer.status < 300 && method == "GET" {
            format!(" {:?}", answer.text())
        } else {
            String::new()
        };
        seen.push(format!("{}{body}", answer.status));
        settle();
    }
    let asked = asked.lock().unwrap();
    let asked: Vec<bool> = asked
        .iter()
        .filter(|(other, _)| *other == target)
        .map(|(_, condition)| *condition)
        .collect();
    let what = match asked.as_slice() {
        [] => "never asked",
        [_] => "asked once",
        [_, true] => "asked again whether changed",
        [_, ..] => "asked again",
    };
    format!("{}, {what}", seen.join(", "))
}

/// A row of the table, for whoever adds a case.
fn row(case: &Case, seen: &[String; 3]) -> String {
    let quoted = |lines: &[&str]| match lines {
        [] => "–".to_owned(),
        lines => format!("`{}`", lines.join("`, `")),
    };
    let [ours, varnish, nginx] = seen;
    format!(
        "| {} | {} {} | {} | {} {} | {ours} | {varnish} | {nginx} |",
        case.name,
        case.status,
        quoted(case.answer),
        quoted(case.first),
        case.method,
        quoted(case.second),
    )
}

#[test]
fn every_difference_to_varnish_and_nginx_is_listed_with_its_reason() {
    let (address, asked) = origin();
    let folder = tempfile::tempdir().unwrap();
    let (Some(varnish), Some(nginx)) = (
        peers::varnish(folder.path(), address),
        peers::nginx(folder.path(), address),
    ) else {
        println!("SKIPPED: there is no varnishd or no nginx (scripts/install.sh test brings them)");
        return;
    };
    let edge = Edge::new(address, &[]);
    let mut unlisted = Vec::new();
    let mut rows = 0;
    for (number, case) in CASES.iter().enumerate() {
        let look = |server, address| observe(server, address, &asked, number, || {});
        let settle = || edge.until("headwater_cache_flights", 0);
        let seen = [
            observe("headwater", edge.address, &asked, number, settle),
            look("varnish", varnish.address),
            look("nginx", nginx.address),
        ];
        if seen.iter().all(|other| *other == seen[0]) {
            continue;
        }
        rows += 1;
        let row = row(case, &seen);
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
        "docs/edge-beside.md lists what is not so any more"
    );
}
