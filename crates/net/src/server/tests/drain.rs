use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::support::*;
use crate::server::{Limits, Server, ServerOptions, Shutdown};

#[test]
fn a_drain_finishes_what_is_in_flight_and_refuses_the_rest() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_notification(&server.gate.reached);
    server.shutdown.drain();
    while std::net::TcpStream::connect(server.address).is_ok() {
        std::thread::yield_now();
    }
    server.gate.open.notify_one();
    let response = client.read_response();
    assert_eq!(response.body, b"through");
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(client.read_rest(), b"");
    server.join().unwrap();
}

#[test]
fn a_request_sent_as_the_drain_begins_is_answered() {
    let server = start_server(Limits::default());
    let mut idle = server.connect();
    assert_eq!(idle.get("/full/5").status, 200);
    let mut fresh = server.connect();
    server.shutdown.drain();
    assert_eq!(idle.get("/full/5").header("connection"), Some("close"));
    assert_eq!(fresh.get("/full/5").header("connection"), Some("close"));
    server.join().unwrap();
}

/// The server sends the head of the first response before the drain, so this head does not announce
/// a close.
#[test]
fn a_response_sent_before_the_drain_is_followed_by_another() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    // The response is longer than the buffers of both sockets, so the server is still sending when
    // the drain starts.
    let len = 32 << 20;
    client.send_text(&format!("GET /full/{len} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.wait_for_bytes();
    server.shutdown.drain();
    while std::net::TcpStream::connect(server.address).is_ok() {
        std::thread::yield_now();
    }
    let first = client.read_response();
    assert_eq!((first.body.len(), first.header("connection")), (len, None));
    assert_eq!(client.get("/full/5").header("connection"), Some("close"));
    server.join().unwrap();
}

#[test]
fn clients_that_heed_connection_close_lose_nothing() {
    let limits = Limits {
        announce: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = start_server(limits);
    let response_count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = server.connect();
                loop {
                    let response = client.get("/pieces/100000/1000");
                    assert_eq!(response.body, test_pattern(100_000));
                    response_count.fetch_add(1, Ordering::Relaxed);
                    if response.header("connection") == Some("close") {
                        return;
                    }
                }
            });
        }
        while response_count.load(Ordering::Relaxed) < 50 {
            std::thread::yield_now();
        }
        server.shutdown.drain();
    });
    server.join().unwrap();
}

#[test]
fn a_stop_waits_for_no_request() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_notification(&server.gate.reached);
    server.shutdown.drain();
    server.shutdown.stop();
    assert_eq!(client.read_rest(), b"");
    server.join().unwrap();
}

#[test]
fn a_drain_that_takes_too_long_is_cut() {
    let limits = Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = start_server(limits);
    let mut client = server.connect();
    client.send_text("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_notification(&server.gate.reached);
    server.shutdown.drain();
    assert_eq!(client.read_rest(), b"");
    server.join().unwrap();
}

/// Regression: `run` waited for the other workers in their order, so that a server with a failed
/// worker continued to run.
#[test]
fn a_worker_that_panics_stops_the_others() {
    let listen = ServerOptions {
        addresses: vec!["127.0.0.1:0".into()],
        workers: 2,
        ..ServerOptions::default()
    };
    let server = Server::bind(listen).unwrap();
    let factory = |number| {
        assert_eq!(number, 0, "requested by the test");
        |_, _| async { http::Response::new(crate::Body::empty()) }
    };
    let error = server.run(factory, Shutdown::new()).unwrap_err();
    assert_eq!(error.to_string(), "a worker panicked");
}
