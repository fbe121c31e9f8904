//! What is answered directly is answered as `hyper` answers it.

use super::support::*;
use crate::server::Limits;

/// Of both ways the one that is asked for by a field that changes nothing else.
const WAYS: [&str; 2] = ["", "Connection: keep-alive, x\r\n"];

/// All that comes for a request and for the one after it, which asks for the end; without the time.
fn all(server: &Running, request: &str, way: &str) -> String {
    let mut client = server.connect();
    client.send(&format!("{request} HTTP/1.1\r\nHost: x\r\n{way}\r\n"));
    client.send("GET /conn HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let all = client.rest();
    let all = all.iter().map(|&byte| char::from(byte)).collect::<String>();
    let dated = |line: &str| line.starts_with("date: ");
    for line in all.split_inclusive("\r\n").filter(|line| dated(line)) {
        let (_, date) = line.trim_end().split_once(": ").unwrap();
        assert!(
            date == "never" || httpdate::parse_http_date(date).is_ok(),
            "{date}"
        );
    }
    let lines = all.split_inclusive("\r\n").filter(|line| !dated(line));
    lines.collect()
}

#[test]
fn answers_are_the_same_byte_for_byte() {
    let server = start(Limits::default());
    for method in ["GET", "HEAD"] {
        for path in [
            "/full/10",
            "/full/0",
            "/pieces/300/7,0,80",
            "/stream/300/7,80",
            "/unsized/300/7,80",
            "/unsized/40/0,20",
            "/unsized/0",
            "/short",
            "/long",
            "/status/204",
            "/status/206",
            "/status/304",
            "/status/404",
            "/status/416",
            "/fields",
            "/written",
            "/last",
            "/full/3?a=b&%20",
            "http://x/full/10",
            "/nothing",
            "/panic",
        ] {
            let request = format!("{method} {path}");
            let [direct, other] = WAYS.map(|way| all(&server, &request, way));
            assert_eq!(direct, other, "{request}");
        }
    }
}

#[test]
fn fields_that_are_written_already_are_said() {
    let server = start(Limits::default());
    for way in WAYS {
        let all = all(&server, "GET /written", way);
        for field in ["etag: \"a\"\r\n", "x-a: 1\r\n", "x-b: 2\r\n"] {
            assert_eq!(all.matches(field).count(), 1, "{field}: {all}");
        }
    }
}

#[test]
fn a_head_in_parts_is_waited_for() {
    let server = start(Limits::default());
    let mut client = server.connect();
    assert_eq!(client.get("/full/3").body, pattern(3));
    client.send("GET /full/100 HTTP/1.1\r\nHo");
    // The first part is read by itself.
    std::thread::sleep(std::time::Duration::from_millis(50));
    client.send("st: x\r\n\r\nGET /full/7 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read().body, pattern(100));
    assert_eq!(client.read().body, pattern(7));
    assert_eq!(client.get("/full/9").body, pattern(9));
}

#[test]
fn what_follows_a_request_waits_for_its_turn() {
    let server = start(Limits::default());
    let mut client = server.connect();
    client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send("GET /full/5 HTTP/1.1\r\nHost: x\r\n\r\nGET /full/6 HT");
    client.send("TP/1.1\r\nHost: x\r\n\r\n");
    server.gate.open.notify_one();
    assert_eq!(client.read().body, b"through");
    assert_eq!(client.read().body, pattern(5));
    assert_eq!(client.read().body, pattern(6));
}
