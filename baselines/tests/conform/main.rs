//! One contract (../README.md), and every server held to it: real processes, plain sockets.

#![allow(clippy::unwrap_used)]

mod client;
mod server;

use client::{Client, leave_midway, says};
use server::Server;

/// Length of the film that is served: no multiple of any chunk.
pub const FILM_BYTES: usize = 3_000_017;

#[test]
fn c_keeps_the_contract() {
    keeps("c", &[]);
}

#[test]
fn c_with_few_workers_keeps_the_contract() {
    keeps("c", &["--workers", "20"]);
}

/// Ends with an error where the address or undefined-behaviour sanitizer found one.
#[test]
fn c_under_sanitizers_keeps_the_contract() {
    keeps("c-sanitized", &[]);
}

#[test]
fn node_keeps_the_contract() {
    keeps("node", &[]);
}

#[test]
fn deno_keeps_the_contract() {
    keeps("deno", &[]);
}

#[test]
fn rust_keeps_the_contract() {
    keeps("rust", &[]);
}

#[test]
fn rust_read_otherwise_keeps_the_contract() {
    keeps("rust", &["--read", "blocking", "--chunk", "65536"]);
    keeps(
        "rust",
        &["--read", "inline", "--chunk", "1000003", "--nodelay"],
    );
}

#[test]
fn nginx_keeps_the_contract() {
    keeps("nginx", &[]);
}

#[test]
fn headwater_keeps_the_contract() {
    keeps("headwater", &[]);
}

/// What it is about, and a check of it.
type Rule = (&'static str, fn(&Server));

fn keeps(name: &str, options: &[&str]) {
    let Some(server) = Server::start(name, options) else {
        return;
    };
    let rules: [Rule; 12] = [
        ("a file", whole),
        ("ranges", ranges),
        ("ranges that hold nothing", unsatisfiable),
        ("what is no range of bytes", no_range),
        ("HEAD", head),
        ("one connection for all", kept),
        ("pipelined", pipelined),
        ("close", closed),
        ("refusals", refused),
        ("nothing outside of the folder", confined),
        ("broken requests", broken),
        ("clients that leave, crawl or come together", crowd),
    ];
    for (rule, holds) in rules {
        println!("{name} {options:?}: {rule}");
        holds(&server);
    }
    server.end();
}

fn whole(server: &Server) {
    let answer = server.client().ask("GET", "/film.mp4", &[]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    assert_eq!(answer.header("content-type"), Some("video/mp4"));
    assert!(answer.body == server.film, "the bytes differ");
    let again = server.client().ask("GET", "/film.mp4?token=1", &[]);
    assert_eq!((again.status, again.body.len()), (200, FILM_BYTES));
    let below = server.client().ask("GET", "/season/episode.mp4", &[]);
    assert_eq!((below.status, below.body.len()), (200, 5));
}

fn ranges(server: &Server) {
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
        let answer = client.ask("GET", "/film.mp4", &[("Range", range)]);
        assert_eq!(answer.status, 206, "{range}");
        let stated = format!("bytes {first}-{last}/{FILM_BYTES}");
        assert_eq!(answer.header("content-range"), Some(&*stated), "{range}");
        assert!(answer.body == server.film[*first..=*last], "{range}");
    }
}

fn unsatisfiable(server: &Server) {
    let mut client = server.client();
    for range in [
        format!("bytes={FILM_BYTES}-"),
        format!("bytes={FILM_BYTES}-{FILM_BYTES}"),
        "bytes=99999999999-".to_owned(),
        "bytes=-0".to_owned(),
    ] {
        let answer = client.ask("GET", "/film.mp4", &[("Range", &range)]);
        assert_eq!(answer.status, 416, "{range}");
        let stated = format!("bytes */{FILM_BYTES}");
        assert_eq!(answer.header("content-range"), Some(&*stated), "{range}");
    }
}

/// RFC 9110, 14.2: other units are ignored; wrong ranges may be ignored or refused.
fn no_range(server: &Server) {
    let mut client = server.client();
    let answer = client.ask("GET", "/film.mp4", &[("Range", "seconds=0-5")]);
    assert_eq!((answer.status, answer.body.len()), (200, FILM_BYTES));
    for range in [
        "bytes=a-b",
        "bytes=9-5",
        "bytes=-",
        "bytes=",
        "bytes=5",
        "bytes=99999999999999999999999-",
    ] {
        let answer = client.ask("GET", "/film.mp4", &[("Range", range)]);
        let whole = answer.status == 200 && answer.body.len() == FILM_BYTES;
        let refused = [400, 416].contains(&answer.status);
        assert!(whole || refused, "{range}: {}", answer.status);
    }
}

fn head(server: &Server) {
    let mut client = server.client();
    let answer = client.ask("HEAD", "/film.mp4", &[]);
    assert_eq!(answer.status, 200);
    let length = FILM_BYTES.to_string();
    assert_eq!(answer.header("content-length"), Some(&*length));
    assert_eq!(client.ask("HEAD", "/absent.mp4", &[]).status, 404);
    // Had a body followed, this would not be an answer.
    let next = client.ask("GET", "/film.mp4", &[("Range", "bytes=1-1")]);
    assert_eq!((next.status, next.body.len()), (206, 1));
}

fn kept(server: &Server) {
    let mut client = server.client();
    for n in 0..50 {
        let range = format!("bytes={}-{}", n * 1000, n * 1000 + 999);
        let fields: &[(&str, &str)] = &[("Range", &range)];
        let (target, fields, status) = match n % 3 {
            0 => ("/film.mp4", fields, 206),
            1 => ("/absent.mp4", fields, 404),
            _ => ("/film.mp4", &[("Range", "bytes=9999999-")][..], 416),
        };
        assert_eq!(client.ask("GET", target, fields).status, status, "{n}");
    }
}

fn pipelined(server: &Server) {
    let mut client = server.client();
    let request = |n: usize| {
        format!(
            "GET /film.mp4 HTTP/1.1\r\nHost: x\r\nRange: bytes={n}-{}\r\n\r\n",
            n + 99
        )
    };
    client.send((0..5).map(request).collect::<String>().as_bytes());
    for n in 0..5 {
        let answer = client.answer(false);
        assert!(
            answer.body == server.film[n..n + 100],
            "{n}: {}",
            answer.status
        );
    }
}

fn closed(server: &Server) {
    let mut client = server.client();
    let answer = client.ask("GET", "/film.mp4", &[("Connection", "close")]);
    assert_eq!((answer.status, answer.body.len()), (200, FILM_BYTES));
    assert!(client.at_end(), "the connection is still open");
    let mut old = server.client();
    old.send(b"GET /season/episode.mp4 HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer(false).body, b"Lions");
    assert!(old.at_end(), "HTTP/1.0 keeps nothing by itself");
}

fn refused(server: &Server) {
    for (method, target, statuses) in [
        ("GET", "/absent.mp4", &[404][..]),
        ("GET", "/season/absent.mp4", &[404]),
        ("GET", "/film.mp4/below.mp4", &[404]),
        ("POST", "/film.mp4", &[405]),
        ("DELETE", "/film.mp4", &[405]),
        // No method of HTTP's: some do not know it, some allow it nowhere.
        ("BREW", "/film.mp4", &[400, 405, 501]),
    ] {
        let answer = server.client().ask(method, target, &[]);
        let status = answer.status;
        assert!(statuses.contains(&status), "{method} {target}: {status}");
    }
}

fn confined(server: &Server) {
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
        let answer = server.client().ask("GET", target, &[]);
        assert!(
            (400..=404).contains(&answer.status),
            "{target}: {}",
            answer.status
        );
    }
}

fn broken(server: &Server) {
    for request in [
        "NONSENSE\r\n\r\n",
        "GET\r\n\r\n",
        "GET /film.mp4 HTTP/1.1\r\nHost: x\r\nno field\r\n\r\n",
    ] {
        let mut client = server.client();
        client.send(request.as_bytes());
        assert_eq!(client.answer(false).status, 400, "{request:?}");
    }
    // A head without an end: refused, or hung up on.
    let mut client = server.client();
    let line = format!("X-Long: {}\r\n", "x".repeat(1000));
    client.send(b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\n");
    let cut = (0..2000).any(|_| !client.try_send(line.as_bytes()));
    assert!(cut || client.at_end(), "two megabytes of fields were taken");
    assert!(says(server, 206), "it does not answer any more");
}

fn crowd(server: &Server) {
    for _ in 0..20 {
        leave_midway(server);
    }
    let mut slow = server.client();
    for byte in b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n" {
        slow.send(&[*byte]);
    }
    assert_eq!(slow.answer(false).body, server.film[..10]);
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || {
                let mut client: Client = server.client();
                for m in 0..5 {
                    let first = (n * 5 + m) * 20_011;
                    let range = format!("bytes={first}-{}", first + 1_000_000);
                    let answer = client.ask("GET", "/film.mp4", &[("Range", &range)]);
                    assert!(
                        answer.body == server.film[first..=first + 1_000_000],
                        "{range}"
                    );
                }
            });
        }
    });
    assert!(says(server, 206), "it does not answer any more");
}
