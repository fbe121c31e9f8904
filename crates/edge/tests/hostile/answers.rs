//! From the origin's side: one that is broken, or somebody else's.

use super::support::{Edge, Exchange, Origin};

const EVIL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil";

fn asked(origin: &Origin, edge: &Edge) -> (super::support::Client, Exchange) {
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    (client, origin.next())
}

/// What follows an answer is no answer to the next request on that connection.
#[test]
fn no_answer_hides_behind_another_one() {
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
        let origin = Origin::new();
        let edge = Edge::new(
            origin.address,
            &[
                "--origin-between-timeout",
                "300ms",
                "--origin-first-byte-timeout",
                "500ms",
            ],
        );
        let (mut client, mut exchange) = asked(&origin, &edge);
        exchange.send(format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}{EVIL}"));
        // Given in part, or refused; never as a whole that holds more than one answer.
        if let Some(answer) = client.try_answer("GET") {
            let whole = answer.status == 200 && answer.complete;
            assert!(
                !whole || !answer.text().contains("evil"),
                "{lines:?}: {answer:?}"
            );
        }
        exchange.done();
        // Another one asks something else: a new connection, or at least an answer of its own.
        let mut other = edge.connect();
        other.send("GET", "/other", &[]);
        let next = origin.next();
        assert_eq!(next.target(), "/other", "{lines:?}");
        next.answer(200, &[], b"mine");
        assert_eq!(other.answer("GET").text(), "mine", "{lines:?}");
        assert_eq!(
            edge.metric("headwater_cache_requests_total{result=\"hit\"}"),
            0
        );
    }
}

#[test]
fn answers_without_a_body_bring_none_along() {
    for (method, status) in [("GET", 204), ("HEAD", 200), ("GET", 304)] {
        let origin = Origin::new();
        let edge = Edge::new(origin.address, &[]);
        let mut client = edge.connect();
        client.send(method, "/a", &["If-None-Match: \"x\""]);
        let mut exchange = origin.next();
        exchange.send(format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{EVIL}",
            EVIL.len()
        ));
        let answer = client.answer(method);
        assert!(!answer.text().contains("evil"), "{method} {status}");
        exchange.done();
        let mut other = edge.connect();
        other.send("GET", "/other", &[]);
        let next = origin.next();
        assert_eq!(next.target(), "/other");
        next.answer(200, &[], b"mine");
        assert_eq!(other.answer("GET").text(), "mine", "{method} {status}");
    }
}

#[test]
fn heads_that_are_none_are_the_origins_failure() {
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
        let origin = Origin::new();
        let edge = Edge::new(origin.address, &["--origin-first-byte-timeout", "500ms"]);
        let (mut client, mut exchange) = asked(&origin, &edge);
        exchange.send(head);
        drop(exchange);
        // A request that may be repeated is, once, on a new connection, if the first was kept.
        let answer = client.answer("GET");
        assert!(
            [502, 504].contains(&answer.status),
            "{head:.80}: {}",
            answer.head
        );
        assert!(answer.header("set-cookie").is_none() && answer.header("x").is_none());
    }
}

#[test]
fn words_before_the_answer_are_not_the_answer_and_have_an_end() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--origin-first-byte-timeout", "2s"]);
    let (mut client, mut exchange) = asked(&origin, &edge);
    exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(client.answer("GET").text(), "ok");
    exchange.done();
    let mut client = edge.connect();
    client.send("GET", "/b", &[]);
    let mut exchange = origin.next();
    let hints = "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".repeat(1000);
    let flood = std::thread::spawn(move || {
        for _ in 0..200 {
            exchange.send(&hints);
        }
    });
    assert!([502, 504].contains(&client.answer("GET").status));
    flood.join().unwrap();
}
