//! Conformance suite: every server must follow one contract (../README.md). The tests start real
//! servers and send bytes over plain sockets.

#![allow(clippy::unwrap_used)]

mod client;
mod server;

use client::{Client, disconnect_midway, responds_with};
use server::Server;

/// Length of the served film, which is not a multiple of any chunk size.
pub const FILM_BYTES: usize = 3_000_017;

#[test]
fn c_keeps_the_contract() {
    assert_conforms("c", &[]);
}

#[test]
fn c_with_few_workers_keeps_the_contract() {
    assert_conforms("c", &["--workers", "20"]);
}

/// With `--requeue`, a worker serves one request and then queues the connection again. The paper in
/// ../README.md describes this form.
#[test]
fn c_that_queues_connections_again_keeps_the_contract() {
    assert_conforms("c", &["--requeue"]);
    assert_conforms("c-sanitized", &["--requeue", "--workers", "4"]);
}

/// Fails if AddressSanitizer or UndefinedBehaviorSanitizer reports an error.
#[test]
fn c_under_sanitizers_keeps_the_contract() {
    assert_conforms("c-sanitized", &[]);
}

#[test]
fn node_keeps_the_contract() {
    assert_conforms("node", &[]);
}

#[test]
fn deno_keeps_the_contract() {
    assert_conforms("deno", &[]);
}

#[test]
fn rust_keeps_the_contract() {
    assert_conforms("rust", &[]);
}

#[test]
fn rust_with_other_reads_keeps_the_contract() {
    assert_conforms("rust", &["--read", "blocking", "--chunk", "65536"]);
    assert_conforms(
        "rust",
        &["--read", "inline", "--chunk", "1000003", "--nodelay"],
    );
}

#[test]
fn nginx_keeps_the_contract() {
    assert_conforms("nginx", &[]);
}

#[test]
fn headwater_keeps_the_contract() {
    assert_conforms("headwater", &[]);
}

/// The name of a rule of the contract, and the function that checks the rule.
type Rule = (&'static str, fn(&Server));

fn assert_conforms(name: &str, options: &[&str]) {
    let Some(server) = Server::start(name, options) else {
        return;
    };
    let rules: [Rule; 12] = [
        ("a file", serves_whole_files),
        ("ranges", serves_single_ranges),
        ("unsatisfiable ranges", refuses_unsatisfiable_ranges),
        ("invalid ranges", ignores_or_refuses_invalid_ranges),
        ("HEAD", answers_head_without_body),
        ("persistent connection", keeps_connections_open),
        ("pipelined requests", answers_pipelined_requests),
        ("closed connection", closes_on_request),
        ("refusals", refuses_other_requests),
        (
            "nothing outside the folder",
            serves_nothing_outside_the_folder,
        ),
        ("broken requests", survives_broken_requests),
        (
            "clients that disconnect, are slow or are many",
            serves_a_crowd_of_clients,
        ),
    ];
    for (rule, check) in rules {
        println!("{name} {options:?}: {rule}");
        check(&server);
    }
    server.end();
}

fn serves_whole_files(server: &Server) {
    let response = server.client().request("GET", "/film.mp4", &[]);
    assert_eq!(response.status, 200);
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    assert_eq!(response.header("content-type"), Some("video/mp4"));
    assert!(response.body == server.film, "the bytes differ");
    let again = server.client().request("GET", "/film.mp4?token=1", &[]);
    assert_eq!((again.status, again.body.len()), (200, FILM_BYTES));
    let below = server.client().request("GET", "/season/episode.mp4", &[]);
    assert_eq!((below.status, below.body.len()), (200, 5));
}

fn serves_single_ranges(server: &Server) {
    let end = FILM_BYTES - 1;
    let wanted = [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=5-9".to_owned(), 5, 9),
        ("bytes=4095-4096".to_owned(), 4095, 4096),
        ("bytes=1048576-2097151".to_owned(), 1_048_576, 2_097_151),
        (format!("bytes={end}-{end}"), end, end),
        (format!("bytes={end}-"), end, end),
        ("bytes=2000000-".to_owned(), 2_000_000, end),
        ("bytes=2999999-99999999999".to_owned(), 2_999_999, end),
        ("bytes=-1".to_owned(), end, end),
        ("bytes=-70000".to_owned(), FILM_BYTES - 70_000, end),
        ("bytes=-99999999999".to_owned(), 0, end),
        ("bytes=0-".to_owned(), 0, end),
    ];
    let mut client = server.client();
    for (range, first, last) in &wanted {
        let response = client.request("GET", "/film.mp4", &[("Range", range)]);
        assert_eq!(response.status, 206, "{range}");
        let stated = format!("bytes {first}-{last}/{FILM_BYTES}");
        assert_eq!(response.header("content-range"), Some(&*stated), "{range}");
        assert!(response.body == server.film[*first..=*last], "{range}");
    }
}

fn refuses_unsatisfiable_ranges(server: &Server) {
    let mut client = server.client();
    for range in [
        format!("bytes={FILM_BYTES}-"),
        format!("bytes={FILM_BYTES}-{FILM_BYTES}"),
        "bytes=99999999999-".to_owned(),
        "bytes=-0".to_owned(),
    ] {
        let response = client.request("GET", "/film.mp4", &[("Range", &range)]);
        assert_eq!(response.status, 416, "{range}");
        let stated = format!("bytes */{FILM_BYTES}");
        assert_eq!(response.header("content-range"), Some(&*stated), "{range}");
    }
}

/// A range in an unknown unit is ignored, and an invalid range may be ignored or refused (RFC 9110,
/// 14.2).
fn ignores_or_refuses_invalid_ranges(server: &Server) {
    let mut client = server.client();
    let response = client.request("GET", "/film.mp4", &[("Range", "seconds=0-5")]);
    assert_eq!((response.status, response.body.len()), (200, FILM_BYTES));
    for range in [
        "bytes=a-b",
        "bytes=9-5",
        "bytes=-",
        "bytes=",
        "bytes=5",
        "bytes=99999999999999999999999-",
    ] {
        let response = client.request("GET", "/film.mp4", &[("Range", range)]);
        let whole = response.status == 200 && response.body.len() == FILM_BYTES;
        let refused = [400, 416].contains(&response.status);
        assert!(whole || refused, "{range}: {}", response.status);
    }
}

fn answers_head_without_body(server: &Server) {
    let mut client = server.client();
    let response = client.request("HEAD", "/film.mp4", &[]);
    assert_eq!(response.status, 200);
    let length = FILM_BYTES.to_string();
    assert_eq!(response.header("content-length"), Some(&*length));
    assert_eq!(client.request("HEAD", "/absent.mp4", &[]).status, 404);
    // If a response to HEAD had a body, the client would take this body for the start of the next
    // response.
    let next = client.request("GET", "/film.mp4", &[("Range", "bytes=1-1")]);
    assert_eq!((next.status, next.body.len()), (206, 1));
}

fn keeps_connections_open(server: &Server) {
    let mut client = server.client();
    for n in 0..50 {
        let range = format!("bytes={}-{}", n * 1000, n * 1000 + 999);
        let fields: &[(&str, &str)] = &[("Range", &range)];
        let (target, fields, status) = match n % 3 {
            0 => ("/film.mp4", fields, 206),
            1 => ("/absent.mp4", fields, 404),
            _ => ("/film.mp4", &[("Range", "bytes=9999999-")][..], 416),
        };
        assert_eq!(client.request("GET", target, fields).status, status, "{n}");
    }
}

fn answers_pipelined_requests(server: &Server) {
    let mut client = server.client();
    let request = |n: usize| {
        format!(
            "GET /film.mp4 HTTP/1.1\r\nHost: x\r\nRange: bytes={n}-{}\r\n\r\n",
            n + 99
        )
    };
    client.send((0..5).map(request).collect::<String>().as_bytes());
    for n in 0..5 {
        let response = client.read_response(false);
        assert!(
            response.body == server.film[n..n + 100],
            "{n}: {}",
            response.status
        );
    }
}

fn closes_on_request(server: &Server) {
    let mut client = server.client();
    let response = client.request("GET", "/film.mp4", &[("Connection", "close")]);
    assert_eq!((response.status, response.body.len()), (200, FILM_BYTES));
    assert!(client.is_closed(), "the connection is still open");
    let mut old = server.client();
    old.send(b"GET /season/episode.mp4 HTTP/1.0\r\n\r\n");
    assert_eq!(old.read_response(false).body, b"Lions");
    assert!(old.is_closed(), "HTTP/1.0 connections close by default");
}

fn refuses_other_requests(server: &Server) {
    for (method, target, statuses) in [
        ("GET", "/absent.mp4", &[404][..]),
        ("GET", "/season/absent.mp4", &[404]),
        ("GET", "/film.mp4/below.mp4", &[404]),
        ("POST", "/film.mp4", &[405]),
        ("DELETE", "/film.mp4", &[405]),
        // BREW is not a method of HTTP, so servers may refuse it in different ways.
        ("BREW", "/film.mp4", &[400, 405, 501]),
    ] {
        let response = server.client().request(method, target, &[]);
        let status = response.status;
        assert!(statuses.contains(&status), "{method} {target}: {status}");
    }
}

fn serves_nothing_outside_the_folder(server: &Server) {
    for target in [
        "/../secret.mp4",
        "/season/../../secret.mp4",
        "/%2e%2e/secret.mp4",
        "/..%2fsecret.mp4",
        "/season/%2e%2e/%2e%2e/secret.mp4",
        "//etc/passwd",
        "/./../secret.mp4",
        "/film.mp4/../../secret.mp4",
        "/..\\secret.mp4",
        "/film.mp4%00",
    ] {
        let response = server.client().request("GET", target, &[]);
        assert!(
            (400..=404).contains(&response.status),
            "{target}: {}",
            response.status
        );
    }
}

fn survives_broken_requests(server: &Server) {
    for request in [
        "NONSENSE\r\n\r\n",
        "GET\r\n\r\n",
        "GET /film.mp4 HTTP/1.1\r\nHost: x\r\nno field\r\n\r\n",
    ] {
        let mut client = server.client();
        client.send(request.as_bytes());
        assert_eq!(client.read_response(false).status, 400, "{request:?}");
    }
    // The server must refuse a head without an end, or close the connection.
    let mut client = server.client();
    let line = format!("X-Long: {}\r\n", "x".repeat(1000));
    client.send(b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\n");
    let cut = (0..2000).any(|_| !client.try_send(line.as_bytes()));
    assert!(
        cut || client.is_closed(),
        "the server accepted two megabytes of header fields"
    );
    assert!(responds_with(server, 206), "the server no longer responds");
}

fn serves_a_crowd_of_clients(server: &Server) {
    for _ in 0..20 {
        disconnect_midway(server);
    }
    let mut slow = server.client();
    for byte in b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n" {
        slow.send(&[*byte]);
    }
    assert_eq!(slow.read_response(false).body, server.film[..10]);
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || {
                let mut client: Client = server.client();
                for m in 0..5 {
                    let first = (n * 5 + m) * 20_011;
                    let range = format!("bytes={first}-{}", first + 1_000_000);
                    let response = client.request("GET", "/film.mp4", &[("Range", &range)]);
                    assert!(
                        response.body == server.film[first..=first + 1_000_000],
                        "{range}"
                    );
                }
            });
        }
    });
    assert!(responds_with(server, 206), "the server no longer responds");
}
