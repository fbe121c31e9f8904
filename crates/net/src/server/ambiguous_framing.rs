//! Detects requests with both `Content-Length` and `Transfer-Encoding`.
//!
//! `hyper` removes the `Content-Length` of such a request before a handler sees the request.
//! Another hop may have used this length to find the end of the request. The server must therefore
//! detect such requests and refuse them (RFC 9112 section 6.1).

use std::io::{self, BufRead, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::read_turns::ReadTurnBudget;
use crate::conn::ConnectionState;

/// Forwards reads and writes to the connection. Scans the request heads in the received bytes. Also
/// limits the bytes that are read before other connections get a turn.
pub(super) struct FramingMonitor<T> {
    io: T,
    scanner: HeadScanner,
    turns: ReadTurnBudget,
    shared: Arc<ConnectionState>,
}

impl<T> FramingMonitor<T> {
    pub(super) fn new(io: T, shared: Arc<ConnectionState>) -> FramingMonitor<T> {
        FramingMonitor {
            io,
            scanner: HeadScanner::default(),
            turns: ReadTurnBudget::new(),
            shared,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for FramingMonitor<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.turns.poll_turn(cx));
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.io).poll_read(cx, buffer) else {
            self.turns.start_turn();
            return Poll::Pending;
        };
        read?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.turns.count_read_bytes(new.len());
        if self.scanner.scan_heads(new) {
            self.shared.mark_ambiguous_length();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for FramingMonitor<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// The first line of an HTTP/2 connection in lower case (RFC 9113 section 3.4). It is not a valid
/// request line of HTTP/1.1, because its version is 2.0.
const HTTP2_PREFACE_LINE: &[u8] = b"pri * http/2.0";
/// Length of the longer of the two field names.
const NAME_BYTES_MAX: usize = TRANSFER_ENCODING.len();

/// The scanner's position in the requests of a connection. The scanner stores no bytes except the
/// start of a field name or request line.
#[derive(Debug, Default)]
struct HeadScanner {
    state: HeadScanPosition,
    /// The current field name, or the start of the request line.
    name: [u8; NAME_BYTES_MAX],
    name_len: usize,
    /// The decimal number in the value of the current field.
    value: u64,
    length: Option<u64>,
    has_coding: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum HeadScanPosition {
    #[default]
    RequestLine,
    Name,
    Value,
    /// The scanner is within a body. This many bytes of the body must still be skipped.
    Body(u64),
    /// The scanner ignores all further bytes. Either the connection uses HTTP/2, or the last
    /// request has a transfer coding. The connection closes after a request with a transfer coding.
    Done,
}

impl HeadScanner {
    /// Scans the next bytes. Returns whether these bytes complete a head that has both fields.
    fn scan_heads(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((&byte, rest)) = bytes.split_first() {
            let skipped = self.skip_irrelevant_line(bytes);
            if skipped > 0 {
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            match &mut self.state {
                HeadScanPosition::Done => return false,
                HeadScanPosition::Body(left) => {
                    let count = usize::try_from(*left).map_or(bytes.len(), |n| n.min(bytes.len()));
                    *left -= count as u64;
                    if *left == 0 {
                        self.state = HeadScanPosition::RequestLine;
                    }
                    bytes = bytes.get(count..).unwrap_or_default();
                    continue;
                }
                _ if byte == b'\n' => {
                    if self.end_line() {
                        return true;
                    }
                }
                HeadScanPosition::Value => {
                    if byte.is_ascii_digit() {
                        let digit = u64::from(byte - b'0');
                        self.value = self.value.saturating_mul(10).saturating_add(digit);
                    }
                }
                HeadScanPosition::Name if byte == b':' => self.state = HeadScanPosition::Value,
                _ if byte == b'\r' => {}
                _ => self.push_name_byte(byte),
            }
            bytes = rest;
        }
        false
    }

    /// Skips a complete line that certainly contains neither of the two fields. Nearly all lines
    /// can be skipped in this way. Returns the length of the skipped line, or 0 if no line was
    /// skipped.
    fn skip_irrelevant_line(&mut self, bytes: &[u8]) -> usize {
        let is_irrelevant = self.name_len == 0
            && match (self.state, bytes) {
                // A line that starts with a line break is not skipped, because it may end the head.
                (HeadScanPosition::RequestLine | HeadScanPosition::Name, [b'\r' | b'\n', ..]) => {
                    false
                }
                (HeadScanPosition::RequestLine, [first, ..]) => !first.eq_ignore_ascii_case(&b'p'),
                (HeadScanPosition::Name, _) => ![CONTENT_LENGTH, TRANSFER_ENCODING]
                    .iter()
                    .any(|name| starts_with_name(bytes, name)),
                _ => false,
            };
        let mut rest = bytes;
        match is_irrelevant.then(|| rest.skip_until(b'\n')) {
            Some(Ok(len)) if bytes.get(len - 1) == Some(&b'\n') => {
                self.state = HeadScanPosition::Name;
                len
            }
            _ => 0,
        }
    }

    /// Stores a byte of a field name. Bytes beyond the buffer are only counted, so a longer name
    /// matches neither field.
    fn push_name_byte(&mut self, byte: u8) {
        if let Some(slot) = self.name.get_mut(self.name_len) {
            *slot = byte.to_ascii_lowercase();
        }
        self.name_len += 1;
    }

    /// Handles a line break. Returns whether the line break ends a head that has both fields.
    fn end_line(&mut self) -> bool {
        let is_empty = self.name_len == 0 && self.state != HeadScanPosition::Value;
        match self.state {
            // The parser skips empty lines before a request, so the scanner skips them too.
            HeadScanPosition::RequestLine if is_empty => {}
            HeadScanPosition::RequestLine
                if self.name.get(..self.name_len) == Some(HTTP2_PREFACE_LINE) =>
            {
                self.state = HeadScanPosition::Done;
            }
            HeadScanPosition::RequestLine => self.state = HeadScanPosition::Name,
            _ if is_empty => return self.end_head(),
            _ => self.end_field(),
        }
        self.name_len = 0;
        self.value = 0;
        false
    }

    fn end_field(&mut self) {
        match self.name.get(..self.name_len) {
            Some(CONTENT_LENGTH) => self.length = Some(self.value),
            Some(TRANSFER_ENCODING) => self.has_coding = true,
            _ => {}
        }
        self.state = HeadScanPosition::Name;
    }

    fn end_head(&mut self) -> bool {
        let is_ambiguous = self.has_coding && self.length.is_some();
        self.state = match self.length.take() {
            _ if self.has_coding => HeadScanPosition::Done,
            Some(len) if len > 0 => HeadScanPosition::Body(len),
            _ => HeadScanPosition::RequestLine,
        };
        is_ambiguous
    }
}

/// Returns whether `bytes` starts with `name`. If `bytes` is shorter than `name`, returns whether
/// `name` starts with `bytes`.
fn starts_with_name(bytes: &[u8], name: &[u8]) -> bool {
    let mut pairs = bytes.iter().zip(name);
    pairs.all(|(a, b)| a.eq_ignore_ascii_case(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ambiguous(text: &str) -> bool {
        let mut whole = HeadScanner::default();
        let found = whole.scan_heads(text.as_bytes());
        // The result must not depend on how the bytes were split into reads.
        let mut split = HeadScanner::default();
        let by_byte = text.as_bytes().chunks(1).any(|byte| split.scan_heads(byte));
        assert_eq!(found, by_byte, "{text:?}");
        found
    }

    #[test]
    fn both_lengths_are_found_in_any_order_and_request() {
        let first = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n";
        let body = "Transfer-Encoding: chunked\r\n\r\n";
        for text in [
            "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTRANSFER-encoding: chunked\r\ncontent-LENGTH:4\r\n\r\n",
            "POST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length:\n\n",
            "PRI / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PRI * HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            &format!("\r\n{first}{body}POST / HTTP/1.1\r\nContent-Length: 0\r\n{body}"),
        ] {
            assert!(is_ambiguous(text), "{text:?}");
        }
        for text in [
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            first,
            &format!("{first}{body}GET / HTTP/1.1\r\n{body}"),
            // Each request has only one of the fields. A `Content-Length` in the trailers of a
            // chunked body is ignored.
            &format!("{first}{body}POST / HTTP/1.1\r\n{body}0\r\nContent-Length: 1\r\n\r\n"),
            "POST / HTTP/1.1\r\nX-Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length-X: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nContent-Length: 4\r\nTransfer-Encoding: x\r\n\r\n",
        ] {
            assert!(!is_ambiguous(text), "{text:?}");
        }
    }
}
