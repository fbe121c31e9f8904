//! Kills `headwater edge` at random moments while it writes to disk. The edge never serves damaged
//! objects.

use crate::support::{HeadwaterServer, TempFolder};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ROUNDS: u64 = 12;

/// Returns a body whose bytes depend on the target and on the byte position.
fn make_body(target: &str) -> Vec<u8> {
    let seed = target
        .bytes()
        .fold(7u64, |sum, byte| sum * 31 + u64::from(byte));
    let len = 30_000 + seed % 90_000;
    let word = |n: u64| (n * 0x9e37_79b9 + seed).to_le_bytes();
    (0..len / 8).flat_map(word).collect()
}

/// Starts an origin that sends only cacheable responses, and counts the requests to it.
fn start_origin() -> (SocketAddr, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let request_count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = request_count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counted = counted.clone();
            std::thread::spawn(move || serve_connection(stream, &counted));
        }
    });
    (address, request_count)
}

fn serve_connection(
    mut stream: TcpStream,
    request_count: &std::sync::atomic::AtomicU64,
) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        request_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = String::from_utf8(head).ok()?;
        let body = make_body(text.split(' ').nth(1)?);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9999\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&body).ok()?;
    }
}

#[test]
fn a_killed_edge_serves_only_complete_objects_from_disk() {
    let (origin, request_count) = start_origin();
    let (origin, folder) = (format!("http://{origin}"), TempFolder::new());
    let disk = folder.0.to_str().unwrap();
    let flags = ["--origin", &origin, "--disk-dir", disk, "--disk", "64MiB"];
    let (mut targets, mut random) = (Vec::new(), 0x2545_f491_4f6c_dd1d_u64);
    let mut from_disk = 0;
    for round in 0..ROUNDS {
        let edge = HeadwaterServer::start_program("edge", &flags);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The edge is killed after less than 500 ms, before or during writes to disk.
        let life = Duration::from_millis(random % 500);
        let began = Instant::now();
        for n in 0.. {
            if began.elapsed() > life {
                break;
            }
            let new = format!("/{round}-{n}");
            // The second request for `new` writes the object to disk. Between the two requests for
            // `new`, the edge gets a request for an older object, which was often cached before a
            // restart.
            let old = targets.get(random as usize % (targets.len() + 1));
            let old = old.unwrap_or(&new).clone();
            for target in [&new, &old, &new] {
                let response = edge.get(target);
                assert_eq!(response.status, 200);
                assert!(
                    response.body == make_body(target),
                    "{target} in round {round}"
                );
                let cache_status = response.header("cache-status").unwrap_or_default();
                from_disk += u64::from(cache_status.ends_with("detail=disk"));
            }
            targets.push(new);
            random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        // Dropping the edge kills it with SIGKILL.
    }
    assert!(from_disk > 0, "nothing was ever served from disk");
    // After the last restart, partial files are removed. Complete objects are served without a
    // request to the origin.
    let edge = HeadwaterServer::start_program("edge", &flags);
    let before = request_count.load(std::sync::atomic::Ordering::Relaxed);
    let mut found = 0;
    for target in &targets {
        let response = edge.get(target);
        assert!(response.body == make_body(target), "{target}");
        let cache_status = response.header("cache-status").unwrap_or_default();
        found += u64::from(cache_status.contains("; hit"));
    }
    let after = request_count.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after - before, targets.len() as u64 - found);
    assert!(found > 0, "nothing survived");
    let metrics = edge.get_text("/metrics");
    let broken = "headwater_cache_disk_broken_total 0";
    assert!(metrics.contains(broken), "{metrics}");
}
