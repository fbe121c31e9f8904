//! `headwater edge` killed at any moment while it writes to disk: what it serves after is right.

use crate::support::{Folder, Server};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ROUNDS: u64 = 12;

/// Bytes that tell which target and which place they are of.
fn body(target: &str) -> Vec<u8> {
    let seed = target
        .bytes()
        .fold(7u64, |sum, byte| sum * 31 + u64::from(byte));
    let len = 30_000 + seed % 90_000;
    let word = |n: u64| (n * 0x9e37_79b9 + seed).to_le_bytes();
    (0..len / 8).flat_map(word).collect()
}

/// An origin whose every answer may be kept, and that says how often it was asked.
fn origin() -> (SocketAddr, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counted = counted.clone();
            std::thread::spawn(move || answer_all(stream, &counted));
        }
    });
    (address, asked)
}

fn answer_all(mut stream: TcpStream, asked: &std::sync::atomic::AtomicU64) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = String::from_utf8(head).ok()?;
        let body = body(text.split(' ').nth(1)?);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9999\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&body).ok()?;
    }
}

#[test]
fn killed_while_writing_it_serves_nothing_wrong_and_keeps_what_was_written() {
    let (origin, asked) = origin();
    let (origin, folder) = (format!("http://{origin}"), Folder::new());
    let disk = folder.0.to_str().unwrap();
    let flags = ["--origin", &origin, "--disk-dir", disk, "--disk", "64MiB"];
    let (mut targets, mut random) = (Vec::new(), 0x2545_f491_4f6c_dd1d_u64);
    let mut from_disk = 0;
    for round in 0..ROUNDS {
        let edge = Server::start_as("edge", &flags);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Anything from at once to well into writing.
        let life = Duration::from_millis(random % 500);
        let began = Instant::now();
        for n in 0.. {
            if began.elapsed() > life {
                break;
            }
            let new = format!("/{round}-{n}");
            // Used twice it goes to disk; what an earlier process wrote is asked for between.
            let old = targets.get(random as usize % (targets.len() + 1));
            let old = old.unwrap_or(&new).clone();
            for target in [&new, &old, &new] {
                let answer = edge.get(target);
                assert_eq!(answer.status, 200);
                assert!(answer.body == body(target), "{target} in round {round}");
                let said = answer.header("cache-status").unwrap_or_default();
                from_disk += u64::from(said.ends_with("detail=disk"));
            }
            targets.push(new);
            random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        // Dropped: killed with SIGKILL.
    }
    assert!(from_disk > 0, "nothing was ever served from disk");
    // Half-written files are swept; what is there is right, and is not asked for again.
    let edge = Server::start_as("edge", &flags);
    let before = asked.load(std::sync::atomic::Ordering::Relaxed);
    let mut found = 0;
    for target in &targets {
        let answer = edge.get(target);
        assert!(answer.body == body(target), "{target}");
        let said = answer.header("cache-status").unwrap_or_default();
        found += u64::from(said.contains("; hit"));
    }
    let after = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after - before, targets.len() as u64 - found);
    assert!(found > 0, "nothing survived");
    let metrics = edge.text("/metrics");
    let broken = "headwater_cache_disk_broken_total 0";
    assert!(metrics.contains(broken), "{metrics}");
}
