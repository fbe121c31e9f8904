//! Requests unaligned byte ranges of files over one connection. The kernel sends the bytes directly
//! from the files, and every byte must be correct and in order.

use crate::support::{HeadwaterServer, TempFolder};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns pseudorandom bytes, so that a page or packet in the wrong place is detected.
fn make_noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

fn send_range_request(stream: &mut TcpStream, file: &str, from: usize, to: usize) {
    let last = to - 1;
    let head = format!("GET /{file} HTTP/1.1\r\nHost: x\r\nRange: bytes={from}-{last}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

fn read_partial_body(reader: &mut impl BufRead, len: usize) -> Vec<u8> {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 206"), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).unwrap();
    body
}

fn write_library(dir: &TempFolder) -> [(&'static str, Vec<u8>); 2] {
    let files = [
        ("one.bin", make_noise(1, 3_000_001)),
        ("two.bin", make_noise(2, 1_234_567)),
    ];
    for (name, bytes) in &files {
        dir.write_file(name, bytes);
    }
    files
}

/// Returns ranges with lengths around the sizes at which the send path changes. Most of these
/// ranges are unaligned.
fn list_ranges(len: usize) -> Vec<(usize, usize)> {
    let lengths = [
        1,
        4095,
        8191,
        8192,
        8193,
        65_537,
        131_071,
        262_144,
        262_145,
        600_001,
        1 << 20,
    ];
    let starts = [0, 1, 4095, 4096, 70_001];
    let each = starts
        .iter()
        .flat_map(|start| lengths.map(|length| (*start, start + length)));
    each.filter(|(_, end)| *end <= len).collect()
}

#[test]
fn odd_ranges_contain_the_bytes_of_the_file() {
    let dir = TempFolder::new();
    let files = write_library(&dir);
    let server = HeadwaterServer::serve_source(&dir.0);
    let mut stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for (name, bytes) in &files {
        for (from, to) in list_ranges(bytes.len()) {
            send_range_request(&mut stream, name, from, to);
            let got = read_partial_body(&mut reader, to - from);
            assert!(got == bytes[from..to], "{name} {from}..{to} differs");
        }
    }
}

#[test]
fn pipelined_ranges_of_two_files_do_not_mix() {
    let dir = TempFolder::new();
    let files = write_library(&dir);
    let server = HeadwaterServer::serve_source(&dir.0);
    let mut stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let wanted: Vec<_> = list_ranges(1_000_000).into_iter().enumerate().collect();
    for (n, (from, to)) in &wanted {
        send_range_request(&mut stream, files[n % 2].0, *from, *to);
    }
    for (n, (from, to)) in &wanted {
        let got = read_partial_body(&mut reader, to - from);
        assert!(got == files[n % 2].1[*from..*to], "response {n} differs");
    }
}

/// If a signal interrupted a system call, the server once assumed that the socket was full. No
/// readiness event followed, so the response stalled until the stall timeout.
#[test]
fn responses_continue_after_the_process_was_stopped() {
    let dir = TempFolder::new();
    let [(name, bytes), _] = write_library(&dir);
    let server = HeadwaterServer::serve_source(&dir.0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = || {
            let mut stream = server.connect();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while !done.load(Ordering::Relaxed) {
                send_range_request(&mut stream, name, 1, bytes.len());
                assert!(read_partial_body(&mut reader, bytes.len() - 1) == bytes[1..]);
            }
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        for _ in 0..200 {
            server.send_signal("STOP");
            server.send_signal("CONT");
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("a response stalled");
        }
    });
}
