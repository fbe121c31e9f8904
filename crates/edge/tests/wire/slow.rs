//! Slow readers: they hurt nobody more than they must, and nothing grows for them without bound.

use crate::KEEP;
use crate::support::{Edge, Origin, head};

/// Each place has its own byte, as far as bytes go.
fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|n| (n / 251 + n) as u8).collect()
}

#[test]
fn who_reads_nothing_holds_nobody_up() {
    const LEN: usize = 1 << 20;
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let (mut slow, mut fast) = (edge.connect(), edge.connect());
    slow.send("GET", "/a", &[]);
    let mut asked = origin.next();
    fast.send("GET", "/a", &[]);
    asked.send(head(200, &[KEEP], Some(LEN)));
    asked.send(bytes(0, LEN));
    asked.done();
    assert!(fast.answer("GET").body == bytes(0, LEN));
    edge.until("headwater_cache_flights", 0);
    assert_eq!(edge.get("/a").cache(), "headwater; hit; detail=fresh");
    assert!(slow.answer("GET").body == bytes(0, LEN), "late, and right");
    assert_eq!(origin.count(), 1);
}

/// Of a body that is too long to be kept, all readers see the slowest one's window.
#[test]
fn a_body_that_is_not_kept_waits_for_its_slowest_reader_and_is_right_for_all() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 24;
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--memory", "16MiB"]);
    let (mut slow, mut fast) = (edge.connect(), edge.connect());
    slow.send("GET", "/live", &[]);
    let mut asked = origin.next();
    fast.send("GET", "/live", &[]);
    edge.until("headwater_cache_flights", 1);
    asked.send(head(200, &[KEEP, "Transfer-Encoding: chunked"], None));
    let feed = std::thread::spawn(move || {
        for n in 0..PIECES {
            asked.send(format!("{PIECE:x}\r\n"));
            asked.send(bytes(n * PIECE, PIECE));
            asked.send("\r\n");
        }
        asked.send("0\r\n\r\n");
        asked.done();
    });
    let reads = std::thread::spawn(move || fast.answer("GET"));
    // Byte by byte at first, then all.
    assert_eq!(slow.head().status, 200);
    let first = slow.take(1);
    let mut rest = Vec::new();
    while !rest.ends_with(b"\r\n0\r\n\r\n") {
        let most = if rest.len() < 4096 { 1 } else { 64 << 10 };
        rest.extend(slow.some(most));
    }
    let fast = reads.join().unwrap();
    feed.join().unwrap();
    assert!(fast.complete && fast.body == bytes(0, PIECES * PIECE));
    let slow = unchunked(&[first, rest].concat());
    assert!(slow == bytes(0, PIECES * PIECE));
    assert!(edge.metric("headwater_cache_memory_bytes") < 1 << 20);
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
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
