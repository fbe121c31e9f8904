//! HTTP/2: requests that a converter to HTTP/1.1 could get wrong (RFC 9113 section 8).

use crate::targets::{AttackedServers, ByteStream};

/// The result of a request on stream 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamResult {
    Status(u16),
    /// The stream was reset, or the connection closed.
    Refused,
}

use StreamResult::{Refused, Status};

type Field = (&'static str, &'static str);

const METHOD: Field = (":method", "GET");
const SCHEME: Field = (":scheme", "http");
const PATH: Field = (":path", "/film.bin");
const AUTHORITY: Field = (":authority", "e");

/// Fields, result and reason.
#[rustfmt::skip]
const REQUESTS: &[(&[Field], StreamResult, &str)] = &[
    (&[METHOD, SCHEME, PATH, AUTHORITY], Status(200), "a valid request"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e")], Status(200), "a Host that is equal"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "evil")], Status(400), "a Host that differs"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e:81")], Status(400), "another port"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e"), ("host", "evil")], Status(400), "two Hosts"),
    (&[METHOD, SCHEME, PATH, ("host", "a/b")], Status(400), "a path in the Host"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("transfer-encoding", "chunked")], Refused, "a transfer coding"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("connection", "x")], Refused, "a field of one connection"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("upgrade", "x")], Refused, "an upgrade"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("te", "gzip")], Refused, "TE other than trailers"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "5")], Refused, "a length without a body"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("X", "y")], Refused, "a name in upper case"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x y", "z")], Refused, "a space in a name"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x", "a\r\nevil: b")], Refused, "a line break in a value"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x", "a\0b")], Refused, "NUL in a value"),
    (&[METHOD, SCHEME, AUTHORITY], Refused, "no path"),
    (&[SCHEME, PATH, AUTHORITY], Refused, "no method"),
    (&[METHOD, SCHEME, PATH, PATH, AUTHORITY], Refused, "two paths"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, (":x", "y")], Refused, "an unknown pseudo-field"),
    (&[METHOD, SCHEME, ("x", "y"), PATH, AUTHORITY], Refused, "a pseudo-field after others"),
    (&[METHOD, SCHEME, (":path", ""), AUTHORITY], Refused, "an empty path"),
    (&[METHOD, SCHEME, (":path", "/a HTTP/1.1\r\nevil: b"), AUTHORITY], Refused, "a line break in the path"),
    (&[("x", "y"), (":status", "200")], Refused, "a response"),
    (&[(":method", "TRACE"), SCHEME, PATH, AUTHORITY], Status(405), "a method that returns the request"),
];

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The longest payload that every receiver accepts.
const FRAME_BYTES_MAX: usize = 16_384;

#[test]
fn hostile_http2_requests_get_the_expected_result() {
    let attacked = AttackedServers::start(&[]);
    let mut wrong = Vec::new();
    for target in &attacked.servers {
        for (fields, expected, reason) in REQUESTS {
            let mut stream = target.connect(b"h2");
            let found = request_on_stream(&mut stream, fields);
            if found != *expected {
                wrong.push(format!(
                    "{}: {reason}: {found:?}, expected {expected:?}",
                    target.name
                ));
            }
        }
    }
    for target in &attacked.servers {
        let tunnel = [(":method", "CONNECT"), AUTHORITY];
        let found = request_on_stream(&mut target.connect(b"h2"), &tunnel);
        assert_eq!(found, Status(if target.is_edge { 405 } else { 400 }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    attacked.assert_unharmed();
}

#[test]
fn oversized_http2_requests_are_refused_with_a_status() {
    let attacked = AttackedServers::start(&[]);
    let path = format!("/{}", "a".repeat(9000));
    let value = "a".repeat(70_000);
    for target in &attacked.servers {
        for (path, value, status) in [(&*path, "", 414), ("/film.bin", &*value, 431)] {
            let fields = [METHOD, SCHEME, (":path", path), AUTHORITY, ("x", value)];
            let found = request_on_stream(&mut target.connect(b"h2"), &fields);
            assert_eq!(found, Status(status), "{}", target.name);
        }
    }
    attacked.assert_unharmed();
}

fn encode_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a field as a literal without indexing (RFC 7541 section 6.2.2), even an invalid one.
fn encode_field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // An integer with a prefix of seven bits (RFC 7541 section 5.1).
        match text.len() {
            len @ 0..127 => bytes.push(u8::try_from(len).unwrap()),
            len => {
                bytes.push(127);
                let mut rest = len - 127;
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

fn request_on_stream(stream: &mut dyn ByteStream, fields: &[(&str, &str)]) -> StreamResult {
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| encode_field(name, value))
        .collect();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(encode_frame(SETTINGS, 0, 0, &[]));
    let mut parts = block.chunks(FRAME_BYTES_MAX).peekable();
    let (mut kind, mut flags) = (HEADERS, END_STREAM);
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            flags |= END_HEADERS;
        }
        bytes.extend(encode_frame(kind, flags, 1, part));
        (kind, flags) = (CONTINUATION, 0);
    }
    let _ = stream.write_all(&bytes);
    let _ = stream.flush();
    loop {
        let Some((kind, payload)) = read_frame(stream) else {
            return Refused;
        };
        match kind {
            HEADERS => return Status(decode_status(&payload)),
            RST_STREAM | GOAWAY => return Refused,
            _ => {}
        }
    }
}

fn read_frame(stream: &mut dyn ByteStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; len as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

/// Decodes the status, which is a response's first field: an entry of the static table, or a literal
/// in Huffman code (RFC 7541 appendices A and B).
fn decode_status(block: &[u8]) -> u16 {
    match block {
        [indexed @ 0x88..=0x8e, ..] => {
            [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)]
        }
        [0x48, 0x80..=0x8f, digits @ ..] => decode_digits(digits),
        [0x48, 3, digits @ ..] => std::str::from_utf8(&digits[..3]).unwrap().parse().unwrap(),
        _ => panic!("no status: {block:02x?}"),
    }
}

/// Decodes three digits: 0 to 2 have codes of five bits, 3 to 9 of six.
fn decode_digits(bytes: &[u8]) -> u16 {
    let mut bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| u16::from(byte >> at & 1)));
    let mut digit = || {
        let five = (0..5).fold(0, |code, _| code << 1 | bits.next().unwrap());
        match five {
            0..=2 => five,
            _ => (five << 1 | bits.next().unwrap()) - 0b01_1001 + 3,
        }
    };
    digit() * 100 + digit() * 10 + digit()
}
