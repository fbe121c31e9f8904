//! Requests that change something, with their bodies.

use crate::support::{Edge, Origin};
use crate::{KEEP, edge, nobody};

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
    let edge = crate::edge(&[nobody(), other.address], &["--origin-balance", "first"]);
    let mut client = edge.connect();
    client.send("POST", "/pay", &["Content-Length: 1"]);
    client.stream_write(b"1");
    let mut asked = other.next();
    assert_eq!(asked.body(1), b"1");
    asked.answer(200, &[], b"paid");
    assert_eq!(client.answer("POST").text(), "paid");
}
