//! Slow readers: the edge must not buffer without bound for a slow client. If a body is small
//! enough to store in the cache, a slow client does not delay other clients that read it.

use crate::KEEP;
use crate::support::{ScriptedOrigin, TestEdge, format_head};

/// Returns `count` bytes from position `from`. Each value depends on its position, so that a test
/// usually detects bytes at a wrong position.
fn make_bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|n| (n / 251 + n) as u8).collect()
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    const LEN: usize = 1 << 20;
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let (mut slow, mut fast) = (edge.connect(), edge.connect());
    slow.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    fast.send("GET", "/a", &[]);
    exchange.send(format_head(200, &[KEEP], Some(LEN)));
    exchange.send(make_bytes(0, LEN));
    exchange.finish();
    assert!(fast.read_response("GET").body == make_bytes(0, LEN));
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(
        edge.get_path("/a").cache_status(),
        "headwater; hit; detail=fresh"
    );
    assert!(
        slow.read_response("GET").body == make_bytes(0, LEN),
        "late but correct"
    );
    assert_eq!(origin.request_count(), 1);
}

/// If a body is too large to store, the edge buffers only a bounded part of it. The slowest reader
/// therefore delays all other readers of the same body.
#[test]
fn an_unstored_body_waits_for_its_slowest_reader() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 24;
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--memory", "16MiB"]);
    let (mut slow, mut fast) = (edge.connect(), edge.connect());
    slow.send("GET", "/live", &[]);
    let mut exchange = origin.next_request();
    fast.send("GET", "/live", &[]);
    edge.wait_for_metric("headwater_cache_flights", 1);
    exchange.send(format_head(
        200,
        &[KEEP, "Transfer-Encoding: chunked"],
        None,
    ));
    let feed = std::thread::spawn(move || {
        for n in 0..PIECES {
            exchange.send(format!("{PIECE:x}\r\n"));
            exchange.send(make_bytes(n * PIECE, PIECE));
            exchange.send("\r\n");
        }
        exchange.send("0\r\n\r\n");
        exchange.finish();
    });
    let reads = std::thread::spawn(move || fast.read_response("GET"));
    // Reads the first 4 KiB byte by byte, and then the rest.
    assert_eq!(slow.read_head().status, 200);
    let first = slow.take(1);
    let mut rest = Vec::new();
    while !rest.ends_with(b"\r\n0\r\n\r\n") {
        let most = if rest.len() < 4096 { 1 } else { 64 << 10 };
        rest.extend(slow.read_some(most));
    }
    let fast = reads.join().unwrap();
    feed.join().unwrap();
    assert!(fast.complete && fast.body == make_bytes(0, PIECES * PIECE));
    let slow = decode_chunks(&[first, rest].concat());
    assert!(slow == make_bytes(0, PIECES * PIECE));
    assert!(edge.read_metric("headwater_cache_memory_bytes") < 1 << 20);
}

fn decode_chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let len = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if len == 0 {
            return all;
        }
        all.extend(&bytes[end + 2..end + 2 + len]);
        bytes = &bytes[end + 4 + len..];
    }
}
