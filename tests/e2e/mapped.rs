//! Parts of files that the kernel sends by itself, at odd places and of odd lengths, over one
//! connection: every byte must be the file's, in order.

use crate::support::{Folder, Server};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// No period of pages or packets, so that a byte from another place shows.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

fn ask(stream: &mut TcpStream, file: &str, from: usize, to: usize) {
    let last = to - 1;
    let head = format!("GET /{file} HTTP/1.1\r\nHost: x\r\nRange: bytes={from}-{last}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

fn answer(reader: &mut impl BufRead, len: usize) -> Vec<u8> {
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

fn library(dir: &Folder) -> [(&'static str, Vec<u8>); 2] {
    let files = [
        ("one.bin", noise(1, 3_000_001)),
        ("two.bin", noise(2, 1_234_567)),
    ];
    for (name, bytes) in &files {
        dir.put(name, bytes);
    }
    files
}

/// Ranges around the sizes at which the way of sending changes, off page borders.
fn ranges(len: usize) -> Vec<(usize, usize)> {
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
fn odd_ranges_are_the_files_own_bytes() {
    let dir = Folder::new();
    let files = library(&dir);
    let server = Server::of(&dir.0);
    let mut stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for (name, bytes) in &files {
        for (from, to) in ranges(bytes.len()) {
            ask(&mut stream, name, from, to);
            let got = answer(&mut reader, to - from);
            assert!(got == bytes[from..to], "{name} {from}..{to} differs");
        }
    }
}

#[test]
fn pipelined_ranges_of_two_files_do_not_mix() {
    let dir = Folder::new();
    let files = library(&dir);
    let server = Server::of(&dir.0);
    let mut stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let wanted: Vec<_> = ranges(1_000_000).into_iter().enumerate().collect();
    for (n, (from, to)) in &wanted {
        ask(&mut stream, files[n % 2].0, *from, *to);
    }
    for (n, (from, to)) in &wanted {
        let got = answer(&mut reader, to - from);
        assert!(got == files[n % 2].1[*from..*to], "answer {n} differs");
    }
}

/// A call that the signal ended early was taken for a full socket, which then never told that it had
/// room: the answer stood still until its client was taken to be stalled.
#[test]
fn what_was_being_sent_when_the_process_was_stopped_goes_on() {
    let dir = Folder::new();
    let [(name, bytes), _] = library(&dir);
    let server = Server::of(&dir.0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = || {
            let mut stream = server.connect();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while !done.load(Ordering::Relaxed) {
                ask(&mut stream, name, 1, bytes.len());
                assert!(answer(&mut reader, bytes.len() - 1) == bytes[1..]);
            }
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        for _ in 0..200 {
            server.signal("STOP");
            server.signal("CONT");
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("an answer stands still");
        }
    });
}
