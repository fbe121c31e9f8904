//! Measures the peak memory while a handler sends interim responses to a client that does not read.
//! This test is the only test of its binary, because it reads the peak memory of the process.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use net::body::Incoming;
use net::{Body, Conn, Server, ServerOptions, Shutdown};

const INTERIM_RESPONSES: usize = 8000;
const HEADER_BYTES: usize = 32 << 10;
/// Maximum growth of the peak memory. All interim responses together are about eight times as
/// large.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// Returns the peak resident memory of this process.
fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// Sends many interim responses, and lets the connection write after each of them. Then reports
/// through `done` that all responses were sent.
async fn respond_after_hints(conn: Conn, done: Sender<()>) -> Response<Body> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from("y".repeat(HEADER_BYTES)).unwrap();
    headers.insert("x", value);
    let sender = conn.interim_sender();
    for _ in 0..INTERIM_RESPONSES {
        sender.send_interim(StatusCode::EARLY_HINTS, &headers);
        tokio::task::yield_now().await;
    }
    done.send(()).unwrap();
    Response::new(Body::from_bytes(Bytes::from_static(b"end")))
}

/// Regression: each interim response extended a buffer, which shrank only after the client had read
/// everything.
#[test]
fn interim_responses_to_a_client_that_does_not_read_hold_little_memory() {
    let server = Server::bind(ServerOptions {
        addresses: vec!["127.0.0.1:0".into()],
        workers: 1,
        ..ServerOptions::default()
    })
    .unwrap();
    let (address, shutdown) = (server.addresses()[0], Shutdown::new());
    let stop = shutdown.clone();
    let (done, all_sent) = std::sync::mpsc::channel();
    let factory = move |_worker| {
        let done = done.clone();
        move |_: Request<Incoming>, conn| respond_after_hints(conn, done.clone())
    };
    let running = std::thread::spawn(move || server.run(factory, stop));
    let mut stream = TcpStream::connect(address).unwrap();
    let before = peak_memory_bytes();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    // Until the last interim response is sent, the client does not read.
    all_sent.recv_timeout(Duration::from_secs(60)).unwrap();
    let growth = peak_memory_bytes().saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "{} MiB", growth >> 20);
    shutdown.drain();
    let (interim, body) = read_to_final_response(&mut BufReader::new(stream));
    assert_eq!(body, b"end");
    assert!((1..INTERIM_RESPONSES).contains(&interim), "{interim}");
    running.join().unwrap().unwrap();
}

/// Returns the number of interim responses that were not dropped, and the body of the final
/// response.
fn read_to_final_response(stream: &mut BufReader<TcpStream>) -> (usize, Vec<u8>) {
    let mut interim = 0;
    loop {
        let status = read_head(stream);
        if status != 103 {
            assert_eq!(status, 200);
            break;
        }
        interim += 1;
    }
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    (interim, body)
}

fn read_head(stream: &mut BufReader<TcpStream>) -> u16 {
    let mut status = 0;
    loop {
        let mut line = String::new();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "no final response"
        );
        match line.trim_end() {
            "" => return status,
            line if status == 0 => status = line.split(' ').nth(1).unwrap().parse().unwrap(),
            _ => {}
        }
    }
}
