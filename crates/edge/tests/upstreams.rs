//! Several origins: who is asked, who next, who not for a while; and requests with a body.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

use support::{AUTHORIZED, Edge, Origin, TOKEN, head};

const KEEP: &str = "Cache-Control: max-age=60";

/// Says its name.
fn named(name: &'static str) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    Origin::answering(move |_| (200, vec![KEEP.into()], name.into()))
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn edge(origins: &[SocketAddr], flags: &[&str]) -> Edge {
    let origins: Vec<String> = origins.iter().map(|address| url(*address)).collect();
    let mut words = vec!["edge", "--listen", "127.0.0.1:0", "--workers", "2"];
    for origin in &origins {
        words.extend(["--origin", origin]);
    }
    words.extend(flags);
    Edge::start(words.iter())
}

fn sent(edge: &Edge, origin: SocketAddr, result: &str) -> u64 {
    let url = url(origin);
    edge.metric(&format!(
        "headwater_upstream_requests_total{{origin=\"{url}/\",result=\"{result}\"}}"
    ))
}

#[test]
fn each_file_has_its_origin_and_all_edges_agree() {
    let origins = [named("a"), named("b"), named("c")];
    let addresses: Vec<_> = origins.iter().map(|(address, _)| *address).collect();
    let (one, other) = (edge(&addresses, &[]), edge(&addresses, &[]));
    let mut bodies = std::collections::BTreeSet::new();
    for n in 0..30 {
        let path = format!("/film/{n}.m4s");
        let body = one.get(&path).text();
        assert_eq!(body, other.get(&format!("{path}?x")).text());
        bodies.insert(body);
    }
    assert_eq!(bodies.len(), 3, "all have work");
}

#[test]
fn who_fails_is_passed_over_and_then_not_asked_for_a_while() {
    let (dead, (alive, seen)) = (nobody(), named("alive"));
    let flags = [
        "--origin-balance",
        "first",
        "--origin-failures",
        "2",
        "--origin-retry-after",
        "1h",
    ];
    let edge = edge(&[dead, alive], &flags);
    for n in 0..10 {
        let answer = edge.get(&format!("/{n}"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "alive"));
    }
    assert_eq!(seen.lock().unwrap().len(), 10);
    assert_eq!(sent(&edge, dead, "failed"), 2);
    assert_eq!(
        edge.metric("headwater_upstream_retries_total{result=\"sent\"}"),
        2
    );
    assert_eq!(edge.metric("headwater_upstream_out_now"), 1);
}

#[test]
fn an_origin_that_says_it_cannot_is_passed_over_too_and_one_that_says_no_is_not() {
    let (busy, _) = Origin::answering(|asked| {
        let status = if asked.target() == "/no" { 404 } else { 503 };
        (status, vec![], b"busy".to_vec())
    });
    let (well, seen) = named("well");
    let edge = edge(
        &[busy, well],
        &["--origin-balance", "first", "--origin-failures", "99"],
    );
    assert_eq!(edge.get("/a").text(), "well");
    assert_eq!(edge.get("/no").status, 404);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn when_all_fail_they_are_not_asked_many_times_over() {
    let sick = || Origin::answering(|_| (503, vec![], b"sick".to_vec()));
    let (one, other) = (sick(), sick());
    let flags = ["--origin-retries", "0", "--origin-failures", "1000"];
    let edge = edge(&[one.0, other.0], &flags);
    for n in 0..100 {
        let answer = edge.get(&format!("/{n}"));
        assert_eq!((answer.status, answer.text().as_str()), (503, "sick"));
    }
    let asked = one.1.lock().unwrap().len() + other.1.lock().unwrap().len();
    let retried = edge.metric("headwater_upstream_retries_total{result=\"sent\"}");
    let spent = edge.metric("headwater_upstream_retries_total{result=\"spent\"}");
    assert_eq!(asked as u64, 100 + retried);
    // Ten to begin with, and one a second.
    assert!(retried < 80 && retried + spent == 100, "{retried} {spent}");
}

#[test]
fn one_origin_alone_is_asked_however_often_it_failed() {
    let dead = nobody();
    let edge = edge(
        &[dead],
        &["--origin-failures", "1", "--origin-retry-after", "1h"],
    );
    for _ in 0..3 {
        let answer = edge.get("/a");
        assert_eq!(answer.status, 502);
        let readers = answer.header("access-control-allow-origin");
        assert_eq!(readers.as_deref(), Some("*"), "a player may read it");
    }
    assert_eq!(sent(&edge, dead, "failed"), 3);
}

#[test]
fn probes_take_an_origin_out_and_bring_it_back() {
    let health = Arc::new(AtomicU16::new(503));
    let said = health.clone();
    let (probed, _) = Origin::answering(move |asked| {
        if asked.target() == "/up" {
            return (said.load(SeqCst), vec![], vec![]);
        }
        (200, vec![KEEP.into()], b"first".to_vec())
    });
    let (other, _) = named("second");
    let flags = [
        "--origin-balance",
        "first",
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-slow-start",
        "0s",
    ];
    let edge = edge(&[probed, other], &flags);
    edge.until("headwater_upstream_out_now", 1);
    assert_eq!(edge.get("/a").text(), "second");
    health.store(200, SeqCst);
    edge.until("headwater_upstream_out_now", 0);
    assert_eq!(edge.get("/b").text(), "first");
}

/// How many of so many files an origin is asked for that has just come back, beside another.
fn asked_of_one_that_is_back(slow_start: &str, files: usize) -> usize {
    let health = Arc::new(AtomicU16::new(503));
    let said = health.clone();
    let (back, seen) = Origin::answering(move |asked| {
        let status = if asked.target() == "/up" {
            said.load(SeqCst)
        } else {
            200
        };
        (status, vec![KEEP.into()], b"back".to_vec())
    });
    let (other, _) = named("other");
    let flags = [
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-slow-start",
        slow_start,
    ];
    let edge = edge(&[back, other], &flags);
    edge.until("headwater_upstream_out_now", 1);
    health.store(200, SeqCst);
    edge.until("headwater_upstream_out_now", 0);
    let mut client = edge.connect();
    for n in 0..files {
        assert_eq!(client.ask("GET", &format!("/{n}"), &[]).status, 200);
    }
    let seen = seen.lock().unwrap();
    seen.iter().filter(|head| !head.contains(" /up ")).count()
}

/// A twentieth beside a whole share is one file in 21, and of 400 files 19: sixty or none would be ten
/// times as rare as once in a million; two whole shares are 200.
#[test]
fn one_that_is_back_is_given_little_at_first() {
    let slowly = asked_of_one_that_is_back("24h", 400);
    assert!((1..60).contains(&slowly), "{slowly}");
    let at_once = asked_of_one_that_is_back("0s", 400);
    assert!((140..260).contains(&at_once), "{at_once}");
}

#[test]
fn a_request_with_a_body_is_handed_over_and_what_was_kept_is_asked_for_again() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    for language in ["de", "fr"] {
        let line = format!("Accept-Language: {language}");
        client.send("GET", "/a", &[&line]);
        origin
            .next()
            .answer(200, &[KEEP, "Vary: Accept-Language"], b"old");
        client.answer("GET");
    }
    edge.until("headwater_cache_flights", 0);
    let lines = [
        "Content-Length: 5",
        "X-Forwarded-For: 1.2.3.4",
        "X-Token: t",
    ];
    client.send("POST", "/a", &lines);
    client.stream_write(b"hello");
    let mut asked = origin.next();
    assert!(
        asked.head.starts_with("POST /a HTTP/1.1\r\n"),
        "{}",
        asked.head
    );
    assert_eq!(asked.header("content-length"), Some("5"));
    assert_eq!(asked.header("x-token"), Some("t"));
    assert_eq!(asked.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(asked.body(5), b"hello");
    asked.answer(201, &["Location: /b"], b"made");
    let answer = client.answer("POST");
    assert_eq!((answer.status, answer.text().as_str()), (201, "made"));
    assert_eq!(
        answer.cache(),
        "headwater; fwd=method; fwd-status=201; detail=method"
    );
    for language in ["de", "fr"] {
        let line = format!("Accept-Language: {language}");
        client.send("GET", "/a", &[&line]);
        origin
            .next()
            .answer(200, &[KEEP, "Vary: Accept-Language"], b"new");
        assert_eq!(client.answer("GET").text(), "new", "{language}");
    }
    // One that failed changed nothing.
    edge.until("headwater_cache_flights", 0);
    client.send("DELETE", "/a", &[]);
    origin.next().answer(403, &[], b"no");
    assert_eq!(client.answer("DELETE").status, 403);
    assert_eq!(
        client.ask("GET", "/a", &["Accept-Language: de"]).text(),
        "new"
    );
}

#[test]
fn bodies_come_in_chunks_too_and_are_bounded() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--body-max", "1000B"]);
    let mut client = edge.connect();
    client.send("PUT", "/a", &["Transfer-Encoding: chunked"]);
    client.stream_write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let mut asked = origin.next();
    assert_eq!(asked.header("transfer-encoding"), Some("chunked"));
    let mut body = Vec::new();
    while !body.ends_with(b"0\r\n\r\n") {
        body.extend(asked.body(1));
    }
    asked.answer(200, &[], b"ok");
    assert_eq!(client.answer("PUT").text(), "ok");
    let mut client = edge.connect();
    client.send("POST", "/a", &["Content-Length: 1001"]);
    assert_eq!(client.head().status, 413);
    let mut client = edge.connect();
    client.send("POST", "/a", &["Transfer-Encoding: chunked"]);
    client.stream_write(b"3e8\r\n");
    client.stream_write(&[7; 1000]);
    client.stream_write(b"\r\n1\r\nx\r\n0\r\n\r\n");
    assert_eq!(client.head().status, 413);
}

#[test]
fn what_may_have_been_done_is_not_done_again() {
    let (origin, other) = (Origin::new(), Origin::new());
    let edge = edge(
        &[origin.address, other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("POST", "/pay", &["Content-Length: 1"]);
    client.stream_write(b"1");
    drop(origin.next());
    assert_eq!(client.answer("POST").status, 502);
    assert_eq!((origin.count(), other.count()), (1, 0));
    // What cannot have arrived is.
    let edge = self::edge(&[nobody(), other.address], &["--origin-balance", "first"]);
    let mut client = edge.connect();
    client.send("POST", "/pay", &["Content-Length: 1"]);
    client.stream_write(b"1");
    let mut asked = other.next();
    assert_eq!(asked.body(1), b"1");
    asked.answer(200, &[], b"paid");
    assert_eq!(client.answer("POST").text(), "paid");
}

#[test]
fn a_rule_turns_to_a_pool_whose_answers_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (usual, archive) = (named("usual"), named("archive"));
    let config = folder.path().join("edge.toml");
    let text = format!(
        "[pool.archive]\norigin = [\"{}\"]\n\n\
         [[rule]]\nwhen = 'header[\"x-from\"] == \"archive\"'\npool = \"archive\"\n",
        url(archive.0)
    );
    std::fs::write(&config, text).unwrap();
    let edge = Edge::new(usual.0, &["--config", config.to_str().unwrap()]);
    for _ in 0..3 {
        assert_eq!(edge.get("/a").text(), "usual");
        assert_eq!(
            edge.ask("GET", "/a", &["X-From: archive"]).text(),
            "archive"
        );
        edge.until("headwater_cache_flights", 0);
    }
    assert_eq!(
        (
            usual.1.lock().unwrap().len(),
            archive.1.lock().unwrap().len()
        ),
        (1, 1)
    );
}

#[test]
fn a_list_warms_the_cache_up() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let (address, seen) = Origin::answering(|asked| match asked.target() {
        "/film/no.m4s" => (404, vec!["Cache-Control: no-store".into()], vec![]),
        "/film/me.m4s" => (200, vec!["Cache-Control: private".into()], b"me".to_vec()),
        _ => (200, vec![KEEP.into()], vec![7; 100_000]),
    });
    let (token, disk) = (token.to_str().unwrap(), folder.path().join("disk"));
    let mut flags = vec!["--admin", "127.0.0.1:0", "--admin-token-file", token];
    flags.extend(["--disk-dir", disk.to_str().unwrap()]);
    let mut edge = Edge::new(address, &flags);
    let list = "#EXTM3U\n1.m4s\n2.m4s\n/film/3.m4s\nno.m4s\nme.m4s\n";
    let warm = |edge: &Edge, expected: &str| {
        let mut client = edge.admin_port();
        let len = format!("Content-Length: {}", list.len());
        client.send("POST", "/warm?base=/film/", &[AUTHORIZED, &len]);
        client.stream_write(list.as_bytes());
        let answer = client.answer("POST");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let found: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let counts =
            ["listed", "fetched", "here", "passed", "failed"].map(|name| found[name].to_string());
        assert_eq!(counts.join(" "), expected, "{found}");
        assert!(
            found["failures"][0]
                .as_str()
                .unwrap()
                .starts_with("/film/no.m4s: 404")
        );
    };
    warm(&edge, "5 3 0 1 1");
    edge.until("headwater_cache_flights", 0);
    warm(&edge, "5 0 3 1 1");
    // What is on disk is here, too.
    edge.drain();
    let edge = Edge::new(address, &flags);
    edge.until("headwater_cache_disk_objects", 3);
    warm(&edge, "5 0 3 1 1");
    for n in 1..4 {
        assert!(
            edge.get(&format!("/film/{n}.m4s"))
                .cache()
                .contains("; hit")
        );
    }
    let asked = |path: &str| {
        let line = format!("GET {path} ");
        seen.lock()
            .unwrap()
            .iter()
            .filter(|head| head.starts_with(&line))
            .count()
    };
    assert_eq!((asked("/film/1.m4s"), asked("/film/3.m4s")), (1, 1));
}

#[test]
fn a_slow_follower_of_a_dead_origin_hears_of_it() {
    let (one, other) = (Origin::new(), Origin::new());
    let edge = edge(
        &[one.address, other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let mut asked = one.next();
    asked.send(head(200, &[KEEP], Some(6)));
    asked.send("abc");
    client.head();
    assert_eq!(client.take(3), b"abc");
    drop(asked);
    // A body that has begun is cut, and never goes on with another origin's.
    assert_eq!(client.rest(), b"");
    assert_eq!(other.count(), 0);
}
