//! Attacks by a client.

use std::time::{Duration, Instant};

use super::strict::StrictOrigin;
use super::support::{ScriptedOrigin, TestEdge};

/// Sends raw bytes, and then closes the sending side of the connection. Reads until the edge closes
/// the connection.
fn exchange_raw(edge: &TestEdge, bytes: &[u8]) -> String {
    let mut client = edge.connect();
    client.write_ignoring_errors(bytes);
    let _ = client.stream.shutdown(std::net::Shutdown::Write);
    String::from_utf8_lossy(&client.read_to_end()).into_owned()
}

const EVIL: &str = "GET /evil HTTP/1.1\r\nHost: evil\r\n\r\n";

/// Each pair is header lines with ambiguous framing, and the body bytes before the hidden request
/// (RFC 9112 sections 5, 6.1, 6.3, 7.1 and 11.2).
const FRAMINGS: &[(&str, &str)] = &[
    // Both framing headers, in both orders. A server behind the edge may use one header, and the
    // edge may use the other header.
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
    // Transfer codings that some parsers accept and other parsers reject or ignore.
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
    // Invalid or repeated lengths.
    ("Content-Length: 0\r\nContent-Length: 36", ""),
    ("Content-Length: 0, 36", ""),
    ("Content-Length: +0", ""),
    ("Content-Length: -1", ""),
    ("Content-Length: 0x24", ""),
    ("Content-Length: 1 0", ""),
    ("Content-Length: ", ""),
    ("Content-Length: 18446744073709551652", ""),
    ("Content-Length : 0", ""),
    // Invalid chunks.
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
fn a_request_body_hides_no_second_request() {
    for method in ["POST", "GET"] {
        for (lines, before) in FRAMINGS {
            let origin = StrictOrigin::new();
            let edge = TestEdge::new(origin.address, &["--header-timeout", "300ms"]);
            let text =
                format!("{method} /a HTTP/1.1\r\nHost: edge\r\n{lines}\r\n\r\n{before}{EVIL}");
            let responses = exchange_raw(&edge, text.as_bytes());
            // The edge may forward the first request, but must not forward the bytes after this
            // request as another request.
            for request in &origin.parsed_requests() {
                let line = format!("{method} /a HTTP/1.1");
                assert_eq!(request.request_line(), line, "{text:?}: {request:?}");
            }
            let count = responses.matches("HTTP/1.1 2").count();
            assert!(count <= 1, "{text:?}: {responses}");
            assert_eq!(
                edge.get_path("/well").status,
                200,
                "the edge still serves requests"
            );
        }
    }
}

#[test]
fn header_injection_is_rejected() {
    let origin = StrictOrigin::new();
    let edge = TestEdge::new(origin.address, &["--header-timeout", "300ms"]);
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
        let responses = exchange_raw(&edge, bytes);
        let text = String::from_utf8_lossy(bytes);
        let upgrade = text.contains("Upgrade");
        assert!(
            !responses.starts_with("HTTP/1.1 2") || upgrade,
            "{text:?}: {responses}"
        );
        assert!(!responses.contains("101 "), "{text:?}: {responses}");
    }
    for seen in origin.parsed_requests() {
        assert!(
            seen.header_values("upgrade").is_empty() && seen.header_values("connection").is_empty()
        );
    }
    // A percent-encoded line break in the target or in a header value does not add a line to the
    // response head.
    let response = edge.request(
        "GET",
        "/b?%0d%0aSet-Cookie:%20a=b",
        &["X-Request-Id: a%0d%0ab"],
    );
    assert_eq!(response.header("set-cookie"), None);
    assert_eq!(response.text(), "GET /b?%0d%0aSet-Cookie:%20a=b HTTP/1.1");
}

#[test]
fn oversized_requests_are_rejected_with_an_explanation() {
    let origin = StrictOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let many: String = (0..2000).map(|n| format!("X-{n}: y\r\n")).collect();
    for (target, lines, status) in [
        (format!("/{}", "a".repeat(9000)), String::new(), "414"),
        ("/a".into(), format!("X: {}\r\n", "a".repeat(70_000)), "431"),
        ("/a".into(), many, "431"),
        ("/a".into(), format!("{}: y\r\n", "a".repeat(70_000)), "4"),
    ] {
        let responses = exchange_raw(
            &edge,
            format!("GET {target} HTTP/1.1\r\nHost: e\r\n{lines}\r\n").as_bytes(),
        );
        assert!(
            responses.starts_with(&format!("HTTP/1.1 {status}")),
            "{status}: {responses:.200}"
        );
    }
    assert!(origin.parsed_requests().is_empty());
}

/// A slow client holds a connection for a limited time and delays no other client.
#[test]
fn slow_headers_and_slow_bodies_are_cut() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--header-timeout", "300ms"]);
    let began = Instant::now();
    let mut slow: Vec<_> = (0..200).map(|_| edge.connect()).collect();
    for client in &mut slow {
        client.write_ignoring_errors(b"GET /a HTTP/1.1\r\nHost: e\r\nX: ");
    }
    let mut body = edge.connect();
    body.send("POST", "/a", &["Content-Length: 10"]);
    body.write_ignoring_errors(b"1");
    assert_eq!(edge.get_path("/healthz").status, 200);
    for client in &mut slow {
        client.write_ignoring_errors(b"y");
        assert_eq!(client.read_to_end(), b"");
    }
    assert_eq!(body.read_head().status, 408);
    // The time limit is generous, because the test checks only that the connections close.
    assert!(began.elapsed() < Duration::from_secs(15));
}
