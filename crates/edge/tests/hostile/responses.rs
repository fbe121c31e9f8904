//! Attacks by a broken or compromised origin.

use super::support::{OriginExchange, ScriptedOrigin, TestEdge};

const EVIL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil";

fn request_origin(
    origin: &ScriptedOrigin,
    edge: &TestEdge,
) -> (super::support::RawClient, OriginExchange) {
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    (client, origin.next_request())
}

/// Bytes after a response of the origin must not become the response to the next request on the
/// same connection.
#[test]
fn a_response_hides_no_second_response() {
    for (lines, body) in [
        ("Content-Length: 3\r\n", "abc"),
        ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        ("Content-Length: 0\r\n", ""),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
        ("Content-Length: 3\r\nContent-Length: 99\r\n", "abc"),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked, identity\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
        ),
        ("Transfer-Encoding: xchunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        ("Content-Length: +3\r\n", "abc"),
        ("Content-Length: 3, 3\r\n", "abc"),
        (
            "Transfer-Encoding: chunked\r\n",
            "3;x=\"\r\nabc\r\n0\r\n\r\n",
        ),
        ("Transfer-Encoding: chunked\r\n", "3\nabc\n0\n\n"),
    ] {
        let origin = ScriptedOrigin::new();
        let edge = TestEdge::new(
            origin.address,
            &[
                "--origin-between-timeout",
                "300ms",
                "--origin-first-byte-timeout",
                "500ms",
            ],
        );
        let (mut client, mut exchange) = request_origin(&origin, &edge);
        exchange.send(format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}{EVIL}"));
        // The client may get a partial response or an error. A complete response must not contain
        // the hidden second response.
        if let Some(response) = client.try_read_response("GET") {
            let whole = response.status == 200 && response.complete;
            assert!(
                !whole || !response.text().contains("evil"),
                "{lines:?}: {response:?}"
            );
        }
        exchange.finish();
        // The next request must get its own response, not the hidden response.
        let mut other = edge.connect();
        other.send("GET", "/other", &[]);
        let next = origin.next_request();
        assert_eq!(next.target(), "/other", "{lines:?}");
        next.respond(200, &[], b"mine");
        assert_eq!(other.read_response("GET").text(), "mine", "{lines:?}");
        assert_eq!(
            edge.read_metric("headwater_cache_requests_total{result=\"hit\"}"),
            0
        );
    }
}

/// Regression: the edge checked only the last transfer coding, so it stored compressed bytes as the
/// object.
#[test]
fn responses_with_other_transfer_codings_become_502() {
    for coding in [
        "gzip, chunked",
        "gzip",
        "gzip\r\nTransfer-Encoding: chunked",
        "chunked, chunked",
    ] {
        let origin = ScriptedOrigin::new();
        let edge = TestEdge::new(origin.address, &[]);
        for _ in 0..2 {
            let (mut client, mut exchange) = request_origin(&origin, &edge);
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\
                 Transfer-Encoding: {coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            ));
            assert_eq!(client.read_response("GET").status, 502, "{coding}");
        }
    }
}

#[test]
fn bodiless_responses_stay_bodiless() {
    for (method, status) in [("GET", 204), ("HEAD", 200), ("GET", 304)] {
        let origin = ScriptedOrigin::new();
        let edge = TestEdge::new(origin.address, &[]);
        let mut client = edge.connect();
        client.send(method, "/a", &["If-None-Match: \"x\""]);
        let mut exchange = origin.next_request();
        exchange.send(format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{EVIL}",
            EVIL.len()
        ));
        let response = client.read_response(method);
        assert!(!response.text().contains("evil"), "{method} {status}");
        exchange.finish();
        let mut other = edge.connect();
        other.send("GET", "/other", &[]);
        let next = origin.next_request();
        assert_eq!(next.target(), "/other");
        next.respond(200, &[], b"mine");
        assert_eq!(
            other.read_response("GET").text(),
            "mine",
            "{method} {status}"
        );
    }
}

#[test]
fn invalid_response_heads_become_502() {
    let many: String = (0..5000).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = format!("X: {}\r\n", "a".repeat(200_000));
    for head in [
        "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX y: a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 99 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/3.0 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "<html>",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        &format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        &format!("HTTP/1.1 200 OK\r\n{long}\r\n"),
    ] {
        let origin = ScriptedOrigin::new();
        let edge = TestEdge::new(origin.address, &["--origin-first-byte-timeout", "500ms"]);
        let (mut client, mut exchange) = request_origin(&origin, &edge);
        exchange.send(head);
        drop(exchange);
        // The edge does not repeat the request, because the connection to the origin was new. After
        // a failure on a reused connection, the edge would repeat the request once.
        let response = client.read_response("GET");
        assert!(
            [502, 504].contains(&response.status),
            "{head:.80}: {}",
            response.head
        );
        assert!(response.header("set-cookie").is_none() && response.header("x").is_none());
    }
}

#[test]
fn interim_responses_are_relayed_and_bounded() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--origin-first-byte-timeout", "2s"]);
    let (mut client, mut exchange) = request_origin(&origin, &edge);
    exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(client.read_head().status, 103);
    assert_eq!(client.read_response("GET").text(), "ok");
    exchange.finish();
    let mut client = edge.connect();
    client.send("GET", "/b", &[]);
    let mut exchange = origin.next_request();
    let hints = "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".repeat(1000);
    let flood = std::thread::spawn(move || {
        for _ in 0..200 {
            exchange.send(&hints);
        }
    });
    let mut heads = (0..).map(|_| client.read_head().status);
    let statuses: Vec<_> = heads.by_ref().take_while(|status| *status == 103).collect();
    assert!(statuses.len() <= 9, "{}", statuses.len());
    flood.join().unwrap();
}
