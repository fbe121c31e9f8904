//! HTTP/2 frames and header blocks. They are encoded by hand so that they can be invalid (RFC 9113,
//! RFC 7541).

use crate::targets::ByteStream;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Length of the longest payload that every receiver must accept.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// The result of a request on stream 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamResult {
    Status(u16),
    /// The stream was reset, or the connection closed.
    Refused,
}

pub fn encode_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a field as a literal without indexing (RFC 7541 section 6.2.2). The field may be
/// invalid.
pub fn encode_field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // The length is an integer with a prefix of seven bits (RFC 7541 section 5.1).
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

/// Sends a request with these fields on stream 1 of a new connection.
pub fn request_on_stream(stream: &mut dyn ByteStream, fields: &[(&str, &str)]) -> StreamResult {
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| encode_field(name, value))
        .collect();
    let mut bytes = PREFACE.to_vec();
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
    read_result(stream)
}

/// Reads until the request on stream 1 has a response or is refused.
pub fn read_result(stream: &mut dyn ByteStream) -> StreamResult {
    loop {
        let Some((kind, payload)) = read_frame(stream) else {
            return StreamResult::Refused;
        };
        match kind {
            HEADERS => return StreamResult::Status(decode_status(&payload)),
            RST_STREAM | GOAWAY => return StreamResult::Refused,
            _ => {}
        }
    }
}

/// Returns the type and payload of the next frame. Returns None at the end of the connection, or
/// after the read timeout.
pub fn read_frame(stream: &mut dyn ByteStream) -> Option<(u8, Vec<u8>)> {
    try_read_frame(stream).ok()
}

/// Returns the type and payload of the next frame.
///
/// # Errors
/// The connection has ended, or the read timeout has passed.
pub fn try_read_frame(stream: &mut dyn ByteStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; len as usize];
    stream.read_exact(&mut payload)?;
    Ok((head[3], payload))
}

/// Decodes the status, which is the first field of a response. The status is an entry of the static
/// table, or a literal with or without Huffman code (RFC 7541 appendices A and B). A change of the
/// dynamic table's size may precede the field.
fn decode_status(block: &[u8]) -> u16 {
    match block {
        [0x20..=0x3f, rest @ ..] => decode_status(rest),
        [indexed @ 0x88..=0x8e, ..] => {
            [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)]
        }
        [0x48 | 8 | 0x18, 0x80..=0x8f, digits @ ..] => decode_digits(digits),
        [0x48 | 8 | 0x18, 3, digits @ ..] => {
            std::str::from_utf8(&digits[..3]).unwrap().parse().unwrap()
        }
        _ => panic!("no status: {block:02x?}"),
    }
}

/// Decodes three digits in Huffman code. The digits 0 to 2 have codes of five bits, the digits 3 to
/// 9 have codes of six bits.
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
