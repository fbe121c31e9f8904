//! HTTP/2 by hand: floods, and requests that HTTP/1.1 could not carry (RFC 9113).

use std::io::{Read, Write};
use std::net::TcpStream;

use super::strict::Strict;
use super::support::{Edge, Origin};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kind, stream, payload.
type Frame = (u8, u32, Vec<u8>);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A field as a literal without indexing (RFC 7541 section 6.2.2), whatever it says.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        match u8::try_from(text.len()) {
            Ok(len) if len < 127 => bytes.push(len),
            _ => {
                let mut rest = text.len() - 127;
                bytes.push(127);
                while rest >= 128 {
                    bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                    rest /= 128;
                }
                bytes.push(u8::try_from(rest).unwrap());
            }
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}

fn get(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    request("GET", path, more)
}

fn request(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "edge"),
    ];
    let fields = usual.iter().chain(more);
    fields
        .flat_map(|(name, value)| field(name, value))
        .collect()
}

fn connect(edge: &Edge) -> TcpStream {
    let mut stream = edge.connect().stream;
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

/// Frames until the edge ends the connection; `until` ends the wait before that.
fn frames(stream: &mut TcpStream, until: impl Fn(&[Frame]) -> bool) -> Vec<Frame> {
    let mut all = Vec::new();
    while !until(&all) {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            break;
        }
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream_id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; len];
        if stream.read_exact(&mut payload).is_err() {
            break;
        }
        all.push((head[3], stream_id, payload));
    }
    all
}

/// Writes the same again and again, until it has been said so often or the edge hears no more.
fn flood(
    stream: &TcpStream,
    times: u32,
    bytes: impl Fn(u32) -> Vec<u8> + Send + 'static,
) -> std::thread::JoinHandle<u32> {
    let mut stream = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        (0..times)
            .find(|n| stream.write_all(&bytes(*n)).is_err())
            .unwrap_or(times)
    })
}

fn refused(all: &[Frame]) -> bool {
    all.iter().any(|(kind, ..)| *kind == GOAWAY)
}

/// CVE-2023-44487: a client that opens and resets streams must not make the edge work for it.
#[test]
fn streams_opened_and_reset_at_once_end_the_connection() {
    const TIMES: u32 = 50_000;
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut stream = connect(&edge);
    let writer = flood(&stream, TIMES, |n| {
        let id = 2 * n + 1;
        let mut bytes = frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            id,
            &get(&format!("/{n}"), &[]),
        );
        bytes.extend(frame(RST_STREAM, 0, id, &8u32.to_be_bytes()));
        bytes
    });
    let all = frames(&mut stream, refused);
    assert!(refused(&all), "no GOAWAY");
    drop(stream);
    writer.join().unwrap();
    let asked = origin.count();
    assert!(asked < 1000, "{asked} requests reached the origin");
    assert_eq!(edge.get("/healthz").status, 200);
}

/// CVE-2024-27316 and its like: a header that never ends.
#[test]
fn continuations_without_end_end_the_connection() {
    let origin = Strict::new();
    let edge = Edge::new(origin.address, &[]);
    for filler in [field("x", &"y".repeat(8000)), Vec::new()] {
        let mut stream = connect(&edge);
        stream
            .write_all(&frame(HEADERS, END_STREAM, 1, &get("/a", &[])))
            .unwrap();
        let writer = flood(&stream, 200_000, move |_| {
            frame(CONTINUATION, 0, 1, &filler)
        });
        let _ = frames(&mut stream, refused);
        drop(stream);
        let written = writer.join().unwrap();
        assert!(written < 200_000, "{written} frames were taken");
    }
    assert!(origin.seen().is_empty());
    assert_eq!(edge.get("/healthz").status, 200);
}

/// A small header that unpacks to a large one (HPACK bomb).
#[test]
fn a_header_that_unpacks_to_more_than_allowed_reaches_nobody() {
    let origin = Strict::new();
    let edge = Edge::new(origin.address, &[]);
    let mut stream = connect(&edge);
    let mut block = get("/a", &[]);
    // Into the dynamic table once (section 6.2.1), and out of it thousands of times.
    let mut kept = field("x", &"y".repeat(3000));
    kept[0] = 0x40;
    block.extend(kept);
    block.extend([0xbe; 10_000]);
    let (first, rest) = block.split_at(10_000);
    stream
        .write_all(&frame(HEADERS, END_STREAM, 1, first))
        .unwrap();
    stream
        .write_all(&frame(CONTINUATION, END_HEADERS, 1, rest))
        .unwrap();
    let all = frames(&mut stream, |all| {
        all.iter()
            .any(|(kind, ..)| [HEADERS, RST_STREAM, GOAWAY].contains(kind))
    });
    assert!(!all.is_empty());
    assert!(origin.seen().is_empty());
    assert_eq!(edge.get("/healthz").status, 200);
}

#[test]
fn pings_and_settings_that_nobody_needs_do_not_pile_up() {
    let edge = Edge::new(Strict::new().address, &[]);
    for (kind, payload) in [(PING, &[0; 8][..]), (SETTINGS, &[]), (DATA, &[])] {
        let stream = connect(&edge);
        // Nobody reads the acknowledgements.
        let writer = flood(&stream, 20_000, move |_| {
            let id = if kind == DATA { 1 } else { 0 };
            frame(kind, 0, id, payload)
        });
        assert_eq!(edge.get("/healthz").status, 200);
        let _ = stream.shutdown(std::net::Shutdown::Both);
        writer.join().unwrap();
    }
}

/// Method, path, and more fields.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Requests that become others when they are written as HTTP/1.1 (RFC 9113 sections 8.2.1, 8.2.2).
#[test]
fn no_request_of_http_2_becomes_two_of_http_1() {
    let cases: &[Case] = &[
        ("POST", "/a", &[("transfer-encoding", "chunked")]),
        ("POST", "/a", &[("content-length", "0")]),
        (
            "POST",
            "/a",
            &[("content-length", "5"), ("content-length", "6")],
        ),
        ("POST", "/a", &[("x", "y\r\nTransfer-Encoding: chunked")]),
        ("POST", "/a", &[("x\r\nhost", "evil")]),
        ("POST", "/a", &[("Content-Length", "0")]),
        ("POST", "/a", &[("connection", "close")]),
        ("POST", "/a HTTP/1.1\r\nHost: e\r\n\r\nGET /evil", &[]),
        ("POST", "/a b", &[]),
        ("GET /evil HTTP/1.1\r\nX: ", "/a", &[]),
        ("POST", "/a", &[(":path", "/evil")]),
        ("POST", "/a", &[("host", "other")]),
    ];
    for (method, path, more) in cases {
        let origin = Strict::new();
        let edge = Edge::new(origin.address, &["--header-timeout", "300ms"]);
        let mut stream = connect(&edge);
        stream
            .write_all(&frame(
                HEADERS,
                END_HEADERS,
                1,
                &request(method, path, more),
            ))
            .unwrap();
        // It may be refused before that.
        let _ = stream.write_all(&frame(
            DATA,
            END_STREAM,
            1,
            b"0\r\n\r\nGET /evil HTTP/1.1\r\nHost: e\r\n\r\n",
        ));
        frames(&mut stream, |all| {
            all.iter().any(|(kind, id, _)| {
                *kind == GOAWAY || [HEADERS, RST_STREAM].contains(kind) && *id == 1
            })
        });
        for seen in origin.seen() {
            assert_eq!(seen.line(), "POST /a HTTP/1.1", "{more:?}");
            assert!(!seen.head.contains("evil"), "{}", seen.head);
            assert_eq!(seen.values("host"), [origin.address.to_string()]);
        }
    }
}
