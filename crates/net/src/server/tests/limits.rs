use std::time::Duration;

use super::support::*;
use crate::server::Limits;

const SHORT: Duration = Duration::from_millis(40);

fn cut_count(server: &Running, reason: &str) -> Option<String> {
    let name = format!("headwater_connections_cut_total{{reason=\"{reason}\"}} ");
    let text = server.metrics.text().unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix(&name).map(str::to_owned))
}

#[test]
fn a_header_that_never_ends_is_cut() {
    let server = start(Limits {
        header_timeout: SHORT,
        ..Limits::default()
    });
    let mut client = server.connect();
    assert_eq!(client.get("/full/5").status, 200);
    client.send("GET /full/5 HTTP/1.1\r\nHost:");
    assert_eq!(client.rest(), b"");
    assert_eq!(cut_count(&server, "header").as_deref(), Some("1"));
    let mut silent = server.connect();
    assert_eq!(silent.rest(), b"", "so is a connection that says nothing");
}

#[test]
fn an_idle_connection_is_closed() {
    let server = start(Limits {
        idle_timeout: SHORT,
        ..Limits::default()
    });
    let mut client = server.connect();
    assert_eq!(client.get("/full/5").status, 200);
    assert_eq!(client.rest(), b"");
    assert_eq!(cut_count(&server, "header"), None);
}

#[test]
fn a_client_that_reads_nothing_is_cut_and_a_slow_handler_is_not() {
    let limits = Limits {
        stall_timeout: SHORT,
        header_timeout: SHORT,
        idle_timeout: SHORT,
        ..Limits::default()
    };
    let server = start(limits);
    let mut waiting = server.connect();
    waiting.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut client = server.connect();
    // More than the sockets' buffers take.
    client.send("GET /pieces/30000000/65536 HTTP/1.1\r\nHost: x\r\n\r\n");
    while cut_count(&server, "stalled").is_none() {
        std::thread::yield_now();
    }
    assert!(client.rest().len() < 30_000_000);
    server.gate.open.notify_one();
    assert_eq!(waiting.read().body, b"through");
}

#[test]
fn headers_too_long_or_too_many_are_refused_with_an_answer() {
    let server = start(Limits {
        header_bytes_max: 16_384,
        ..Limits::default()
    });
    let cases = [
        (
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9000)),
            414,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n",
                "b".repeat(1_000_000)
            ),
            431,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
                "A: b\r\n".repeat(1000)
            ),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(90)),
            404,
        ),
    ];
    for (request, status) in cases {
        let mut client = server.connect();
        client.send(&request);
        assert_eq!(client.read_head().status, status, "{}", &request[..40]);
    }
}

#[test]
fn a_16_kb_target_is_refused_by_default() {
    let server = start(Limits::default());
    let mut client = server.connect();
    let answer = client.get(&format!("/{}", "a".repeat(16_384)));
    assert_eq!(answer.status, 414);
    let reason = answer.header("headwater-error").unwrap();
    assert_eq!(
        reason,
        "client; the target has 16385 bytes, the limit is 8192"
    );
}

#[test]
fn one_connection_too_many_is_told_so() {
    let server = start(Limits {
        connections_max: 2,
        ..Limits::default()
    });
    let mut held = [server.connect(), server.connect()];
    for client in &mut held {
        assert_eq!(client.get("/full/1").status, 200);
    }
    let mut refused = server.connect();
    assert_eq!(refused.read_head().status, 503);
    assert!(refused.rest().is_empty());
    drop(held);
    // The server notices the ends in its own time.
    while server.connect().get_or_refused("/full/1") != 200 {
        std::thread::yield_now();
    }
}

impl Client {
    fn get_or_refused(&mut self, path: &str) -> u16 {
        use std::io::Write;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        // A refusal may already have closed the connection.
        let _ = self.stream.get_mut().write_all(request.as_bytes());
        self.read_head().status
    }
}
