//! Attacks with raw HTTP/2 frames: floods, and requests that HTTP/1.1 cannot express (RFC 9113).

use std::io::{Read, Write};
use std::net::TcpStream;

use super::strict::StrictOrigin;
use super::support::{ScriptedOrigin, TestEdge};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame: type, stream identifier and payload.
type RawFrame = (u8, u32, Vec<u8>);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn encode_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a field as a literal without indexing (RFC 7541 section 6.2.2). The field may be
/// invalid.
fn encode_field(name: &str, value: &str) -> Vec<u8> {
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

fn encode_get(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    encode_request("GET", path, more)
}

fn encode_request(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "edge"),
    ];
    let fields = usual.iter().chain(more);
    fields
        .flat_map(|(name, value)| encode_field(name, value))
        .collect()
}

fn connect_http2(edge: &TestEdge) -> TcpStream {
    let mut stream = edge.connect().stream;
    stream.write_all(PREFACE).unwrap();
    stream
        .write_all(&encode_frame(SETTINGS, 0, 0, &[]))
        .unwrap();
    stream
}

/// Reads frames until the edge closes the connection, or until the condition holds.
fn read_frames(stream: &mut TcpStream, until: impl Fn(&[RawFrame]) -> bool) -> Vec<RawFrame> {
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

/// Writes `bytes(0)`, `bytes(1)` and so on, up to `times` writes or until the edge closes the
/// connection. Writes on a new thread, which returns the number of successful writes.
fn flood_edge(
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

fn is_refused(all: &[RawFrame]) -> bool {
    all.iter().any(|(kind, ..)| *kind == GOAWAY)
}

/// CVE-2023-44487: a client that opens streams and resets them at once must not flood the origin.
#[test]
fn rapid_resets_close_the_connection() {
    const TIMES: u32 = 50_000;
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut stream = connect_http2(&edge);
    let writer = flood_edge(&stream, TIMES, |n| {
        let id = 2 * n + 1;
        let mut bytes = encode_frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            id,
            &encode_get(&format!("/{n}"), &[]),
        );
        bytes.extend(encode_frame(RST_STREAM, 0, id, &8u32.to_be_bytes()));
        bytes
    });
    let all = read_frames(&mut stream, is_refused);
    assert!(is_refused(&all), "no GOAWAY");
    drop(stream);
    writer.join().unwrap();
    let request_count = origin.request_count();
    assert!(
        request_count < 1000,
        "{request_count} requests reached the origin"
    );
    assert_eq!(edge.get_path("/healthz").status, 200);
}

/// CVE-2024-27316: a client sends a header block that never ends.
#[test]
fn endless_continuations_close_the_connection() {
    let origin = StrictOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    for filler in [encode_field("x", &"y".repeat(8000)), Vec::new()] {
        let mut stream = connect_http2(&edge);
        stream
            .write_all(&encode_frame(
                HEADERS,
                END_STREAM,
                1,
                &encode_get("/a", &[]),
            ))
            .unwrap();
        let writer = flood_edge(&stream, 200_000, move |_| {
            encode_frame(CONTINUATION, 0, 1, &filler)
        });
        let _ = read_frames(&mut stream, is_refused);
        drop(stream);
        let written = writer.join().unwrap();
        assert!(written < 200_000, "{written} frames were taken");
    }
    assert!(origin.parsed_requests().is_empty());
    assert_eq!(edge.get_path("/healthz").status, 200);
}

/// HPACK bomb: a small header block decodes to a very large list of fields.
#[test]
fn an_hpack_bomb_reaches_no_origin() {
    let origin = StrictOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut stream = connect_http2(&edge);
    let mut block = encode_get("/a", &[]);
    // The field enters the dynamic table once (RFC 7541 section 6.2.1), and the block refers to
    // this table entry thousands of times.
    let mut kept = encode_field("x", &"y".repeat(3000));
    kept[0] = 0x40;
    block.extend(kept);
    block.extend([0xbe; 10_000]);
    let (first, rest) = block.split_at(10_000);
    stream
        .write_all(&encode_frame(HEADERS, END_STREAM, 1, first))
        .unwrap();
    stream
        .write_all(&encode_frame(CONTINUATION, END_HEADERS, 1, rest))
        .unwrap();
    let all = read_frames(&mut stream, |all| {
        all.iter()
            .any(|(kind, ..)| [HEADERS, RST_STREAM, GOAWAY].contains(kind))
    });
    assert!(!all.is_empty());
    assert!(origin.parsed_requests().is_empty());
    assert_eq!(edge.get_path("/healthz").status, 200);
}

#[test]
fn ping_and_settings_floods_do_not_accumulate() {
    let edge = TestEdge::new(StrictOrigin::new().address, &[]);
    for (kind, payload) in [(PING, &[0; 8][..]), (SETTINGS, &[]), (DATA, &[])] {
        let stream = connect_http2(&edge);
        // The client does not read the edge's acknowledgements of PING and SETTINGS frames.
        let writer = flood_edge(&stream, 20_000, move |_| {
            let id = if kind == DATA { 1 } else { 0 };
            encode_frame(kind, 0, id, payload)
        });
        assert_eq!(edge.get_path("/healthz").status, 200);
        let _ = stream.shutdown(std::net::Shutdown::Both);
        writer.join().unwrap();
    }
}

/// A request: method, path, and further fields.
type FieldCase = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Each request would have another meaning if the edge copied its fields into an HTTP/1.1 request
/// (RFC 9113 sections 8.2.1, 8.2.2).
#[test]
fn an_http2_request_never_becomes_two_http1_requests() {
    let cases: &[FieldCase] = &[
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
        let origin = StrictOrigin::new();
        let edge = TestEdge::new(origin.address, &["--header-timeout", "300ms"]);
        let mut stream = connect_http2(&edge);
        stream
            .write_all(&encode_frame(
                HEADERS,
                END_HEADERS,
                1,
                &encode_request(method, path, more),
            ))
            .unwrap();
        // Ignores errors, because the edge may reject the request before this frame arrives.
        let _ = stream.write_all(&encode_frame(
            DATA,
            END_STREAM,
            1,
            b"0\r\n\r\nGET /evil HTTP/1.1\r\nHost: e\r\n\r\n",
        ));
        read_frames(&mut stream, |all| {
            all.iter().any(|(kind, id, _)| {
                *kind == GOAWAY || [HEADERS, RST_STREAM].contains(kind) && *id == 1
            })
        });
        for seen in origin.parsed_requests() {
            assert_eq!(seen.request_line(), "POST /a HTTP/1.1", "{more:?}");
            assert!(!seen.head.contains("evil"), "{}", seen.head);
            assert_eq!(seen.header_values("host"), [origin.address.to_string()]);
        }
    }
}
