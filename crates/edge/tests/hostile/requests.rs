//! From the client's side.

use std::time::{Duration, Instant};

use super::strict::Strict;
use super::support::{Edge, Origin};

/// Sends bytes as they are, and reads until the edge ends the connection or has nothing to say.
fn raw(edge: &Edge, bytes: &[u8]) -> String {
    let mut client = edge.connect();
    client.stream_write(bytes);
    let _ = client.stream.shutdown(std::net::Shutdown::Write);
    String::from_utf8_lossy(&client.rest()).into_owned()
}

const EVIL: &str = "GET /evil HTTP/1.1\r\nHost: evil\r\n\r\n";

/// Framings that two parsers could read in two ways, and what stands before the request that is to
/// hide: RFC 9112 sections 5, 6.1, 6.3, 7.1 and 11.2.
const FRAMINGS: &[(&str, &str)] = &[
    // Both, in both orders: the parser behind may believe the other one.
    (
        "Content-Length: 41\r\nTransfer-Encoding: chunked",
        "0\r\n\r\n",
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "0\r\n\r\n",
    ),
    (
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "0\r\n\r\n",
    ),
    // A coding that some know and some do not.
    ("Transfer-Encoding: xchunked", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked, identity", "0\r\n\r\n"),
    ("Transfer-Encoding: identity, chunked", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked, chunked", "0\r\n\r\n"),
    ("Transfer-Encoding: \u{b}chunked", "0\r\n\r\n"),
    ("Transfer-Encoding: \"chunked\"", "0\r\n\r\n"),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "0\r\n\r\n",
    ),
    ("Transfer-Encoding: cHuNkEd", "0\r\n\r\n"),
    ("Transfer-Encoding : chunked", "0\r\n\r\n"),
    ("X: y\r\n Transfer-Encoding: chunked", "0\r\n\r\n"),
    ("X: y\nTransfer-Encoding: chunked", "0\r\n\r\n"),
    ("X: y\rTransfer-Encoding: chunked", "0\r\n\r\n"),
    ("Transfer_Encoding: chunked", "0\r\n\r\n"),
    // Lengths that are none, or more than one.
    ("Content-Length: 0\r\nContent-Length: 36", ""),
    ("Content-Length: 0, 36", ""),
    ("Content-Length: +0", ""),
    ("Content-Length: -1", ""),
    ("Content-Length: 0x24", ""),
    ("Content-Length: 1 0", ""),
    ("Content-Length: ", ""),
    ("Content-Length: 18446744073709551652", ""),
    ("Content-Length : 0", ""),
    // Chunks that are none.
    ("Transfer-Encoding: chunked", "-1\r\n\r\n"),
    ("Transfer-Encoding: chunked", "0x0\r\n\r\n"),
    ("Transfer-Encoding: chunked", "FFFFFFFFFFFFFFFF1\r\n\r\n"),
    ("Transfer-Encoding: chunked", "1\nx\n0\n\n"),
    ("Transfer-Encoding: chunked", "1\r\nxy0\r\n\r\n"),
    (
        "Transfer-Encoding: chunked",
        "1\r\nx\r\n0\r\nContent-Length: 9\r\n\r\n",
    ),
    ("Transfer-Encoding: chunked", "0;a=\"\r\n\r\n"),
    ("Transfer-Encoding: chunked", "1;\nx\r\n0\r\n\r\n"),
];

#[test]
fn no_request_hides_in_another_ones_body() {
    for method in ["POST", "GET"] {
        for (lines, before) in FRAMINGS {
            let origin = Strict::new();
            let edge = Edge::new(origin.address, &["--header-timeout", "300ms"]);
            let text =
                format!("{method} /a HTTP/1.1\r\nHost: edge\r\n{lines}\r\n\r\n{before}{EVIL}");
            let answers = raw(&edge, text.as_bytes());
            // One whose framing is odd is the last on its connection, whatever follows it.
            for request in &origin.seen() {
                let line = format!("{method} /a HTTP/1.1");
                assert_eq!(request.line(), line, "{text:?}: {request:?}");
            }
            let count = answers.matches("HTTP/1.1 2").count();
            assert!(count <= 1, "{text:?}: {answers}");
            assert_eq!(edge.get("/well").status, 200, "it lives on");
        }
    }
}

#[test]
fn lines_in_lines_are_no_lines() {
    let origin = Strict::new();
    let edge = Edge::new(origin.address, &["--header-timeout", "300ms"]);
    for bytes in [
        &b"GET /a\r\nX: y HTTP/1.1\r\nHost: e\r\n\r\n"[..],
        b"GET /a\0b HTTP/1.1\r\nHost: e\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nX: a\0b\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nX: a\rSet-Cookie: b\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nX\0Y: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\n: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nX y: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nX\r\n\r\n",
        b"GET /a HTTP/1.1\r\n Host: e\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET a HTTP/1.1\r\nHost: e\r\n\r\n",
        b"CONNECT e:80 HTTP/1.1\r\nHost: e\r\n\r\n",
        b"TRACE /a HTTP/1.1\r\nHost: e\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: e\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nnot two",
    ] {
        let answers = raw(&edge, bytes);
        let text = String::from_utf8_lossy(bytes);
        let upgrade = text.contains("Upgrade");
        assert!(
            !answers.starts_with("HTTP/1.1 2") || upgrade,
            "{text:?}: {answers}"
        );
        assert!(!answers.contains("101 "), "{text:?}: {answers}");
    }
    for seen in origin.seen() {
        assert!(seen.values("upgrade").is_empty() && seen.values("connection").is_empty());
    }
    // What a client sends in a name of its own does not come back as two lines.
    let answer = edge.ask(
        "GET",
        "/b?%0d%0aSet-Cookie:%20a=b",
        &["X-Request-Id: a%0d%0ab"],
    );
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(answer.text(), "GET /b?%0d%0aSet-Cookie:%20a=b HTTP/1.1");
}

#[test]
fn too_much_is_refused_in_words() {
    let origin = Strict::new();
    let edge = Edge::new(origin.address, &[]);
    let many: String = (0..2000).map(|n| format!("X-{n}: y\r\n")).collect();
    for (target, lines, status) in [
        (format!("/{}", "a".repeat(9000)), String::new(), "414"),
        ("/a".into(), format!("X: {}\r\n", "a".repeat(70_000)), "431"),
        ("/a".into(), many, "431"),
        ("/a".into(), format!("{}: y\r\n", "a".repeat(70_000)), "4"),
    ] {
        let answers = raw(
            &edge,
            format!("GET {target} HTTP/1.1\r\nHost: e\r\n{lines}\r\n").as_bytes(),
        );
        assert!(
            answers.starts_with(&format!("HTTP/1.1 {status}")),
            "{status}: {answers:.200}"
        );
    }
    assert!(origin.seen().is_empty());
}

/// One who dribbles holds a connection for a while, and nobody up.
#[test]
fn slow_headers_and_slow_bodies_are_cut() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--header-timeout", "300ms"]);
    let began = Instant::now();
    let mut slow: Vec<_> = (0..200).map(|_| edge.connect()).collect();
    for client in &mut slow {
        client.stream_write(b"GET /a HTTP/1.1\r\nHost: e\r\nX: ");
    }
    let mut body = edge.connect();
    body.send("POST", "/a", &["Content-Length: 10"]);
    body.stream_write(b"1");
    assert_eq!(edge.get("/healthz").status, 200);
    for client in &mut slow {
        client.stream_write(b"y");
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(body.head().status, 408);
    // No figure, but an end.
    assert!(began.elapsed() < Duration::from_secs(15));
}
