//! Tests that the fast path sends the same responses as `hyper`.

use super::support::*;
use crate::server::{Limits, ServerOptions};

/// Header fields that decide whether the fast path or `hyper` serves a request, and change nothing
/// else. The first entry selects the fast path, and the second entry selects `hyper`.
const WAYS: [&str; 2] = ["", "Connection: keep-alive, x\r\n"];
/// Header fields of a request that closes the connection. The first entry selects the fast path,
/// and the second entry selects `hyper`.
const CLOSING_WAYS: [&str; 2] = ["Connection: close\r\n", "Connection: close, x\r\n"];
const HTTP_10_WAYS: [&str; 2] = ["", "Connection: x\r\n"];

/// Sends a request, and then a request that closes the connection. Returns both responses without
/// the Date fields.
fn read_both_responses(server: &TestServer, request: &str, way: &str) -> String {
    let mut client = server.connect();
    client.send_text(&format!("{request} HTTP/1.1\r\nHost: x\r\n{way}\r\n"));
    client.send_text("GET /conn HTTP/1.1\r\nHost: x\r\nConnection: close, x\r\n\r\n");
    remove_dates(&client.read_rest())
}

/// Sends a request that closes the connection. Returns the response without the Date field.
fn read_last_response(server: &TestServer, request: &str, way: &str) -> String {
    let mut client = server.connect();
    client.send_text(&format!("{request}\r\nHost: x\r\n{way}\r\n"));
    remove_dates(&client.read_rest())
}

/// Checks the Date fields of responses, and returns the responses without these fields.
fn remove_dates(all: &[u8]) -> String {
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

const PATHS: [&str; 21] = [
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
];

#[test]
fn both_paths_send_the_same_bytes() {
    let server = start_server(Limits::default());
    for method in ["GET", "HEAD"] {
        for path in PATHS {
            let request = format!("{method} {path}");
            let [direct, other] = WAYS.map(|way| read_both_responses(&server, &request, way));
            assert_eq!(direct, other, "{request}");
        }
    }
}

#[test]
fn both_paths_send_the_same_last_response() {
    let server = start_server(Limits::default());
    for (version, ways) in [("HTTP/1.1", CLOSING_WAYS), ("HTTP/1.0", HTTP_10_WAYS)] {
        for method in ["GET", "HEAD"] {
            for path in PATHS {
                let request = format!("{method} {path} {version}");
                let [direct, other] = ways.map(|way| read_last_response(&server, &request, way));
                assert_eq!(direct, other, "{request}");
            }
        }
    }
}

#[test]
fn serialized_fields_are_sent() {
    let server = start_server(Limits::default());
    for way in WAYS {
        let all = read_both_responses(&server, "GET /written", way);
        for field in ["etag: \"a\"\r\n", "x-a: 1\r\n", "x-b: 2\r\n"] {
            assert_eq!(all.matches(field).count(), 1, "{field}: {all}");
        }
    }
}

#[test]
fn a_head_in_parts_is_waited_for() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    assert_eq!(client.get("/full/3").body, test_pattern(3));
    client.send_text("GET /full/100 HTTP/1.1\r\nHo");
    // Waits until the server has read the first part.
    std::thread::sleep(std::time::Duration::from_millis(50));
    client.send_text("st: x\r\n\r\nGET /full/7 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read_response().body, test_pattern(100));
    assert_eq!(client.read_response().body, test_pattern(7));
    assert_eq!(client.get("/full/9").body, test_pattern(9));
}

#[test]
fn a_pipelined_request_waits_for_its_turn() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send_text("GET /full/5 HTTP/1.1\r\nHost: x\r\n\r\nGET /full/6 HT");
    client.send_text("TP/1.1\r\nHost: x\r\n\r\n");
    server.gate.open.notify_one();
    assert_eq!(client.read_response().body, b"through");
    assert_eq!(client.read_response().body, test_pattern(5));
    assert_eq!(client.read_response().body, test_pattern(6));
}

#[test]
fn a_client_that_pipelines_many_requests_does_not_starve_others() {
    let server = start_with_workers(1, ServerOptions::default());
    let (mut blocker, mut greedy, mut modest) =
        (server.connect(), server.connect(), server.connect());
    for client in [&mut greedy, &mut modest] {
        assert_eq!(client.get("/full/3").status, 200);
    }
    // All requests arrive while the only worker is busy.
    let held = server.gate.worker.lock().unwrap();
    blocker.send_text("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_notification(&server.gate.reached);
    greedy.send_text(&"GET /ticket HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
    modest.send_text("GET /ticket HTTP/1.1\r\nHost: x\r\n\r\n");
    drop(held);
    let ticket = modest.read_response().body;
    let ticket: u64 = std::str::from_utf8(&ticket).unwrap().parse().unwrap();
    assert!(ticket <= 2, "{ticket} requests of the other client first");
}
