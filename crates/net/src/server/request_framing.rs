//! Detects requests with both `Content-Length` and `Transfer-Encoding`.
//!
//! `hyper` drops the length of such a request before a handler sees it. Another hop may have used the
//! length to find the end of the request, so the server must be able to refuse it (RFC 9112 section
//! 6.1).

use std::io::{self, BufRead, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::read_turns::ReadTurns;
use crate::conn::ConnectionState;

/// Forwards reads and writes, scans the request heads in the bytes that are read, and lets other
/// connections have turns.
pub(super) struct FramingMonitor<T> {
    io: T,
    scanner: HeadScanner,
    turns: ReadTurns,
    shared: Arc<ConnectionState>,
}

impl<T> FramingMonitor<T> {
    pub(super) fn new(io: T, shared: Arc<ConnectionState>) -> FramingMonitor<T> {
        FramingMonitor {
            io,
            scanner: HeadScanner::default(),
            turns: ReadTurns::new(),
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
            self.turns.restart();
            return Poll::Pending;
        };
        read?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.turns.count(new.len());
        if self.scanner.scan(new) {
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
/// The longer of the two names.
const NAME_BYTES_MAX: usize = TRANSFER_ENCODING.len();

/// A position in the requests of a connection. It keeps no bytes except the start of a field name.
#[derive(Debug, Default)]
struct HeadScanner {
    state: ScanState,
    /// The name of the current field, or the start of the request line.
    name: [u8; NAME_BYTES_MAX],
    name_len: usize,
    /// Digits of the current field's value.
    value: u64,
    length: Option<u64>,
    has_coding: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    #[default]
    RequestLine,
    Name,
    Value,
    /// Within a body; this many of its bytes have not been scanned yet.
    Body(u64),
    /// Nothing that follows needs to be scanned: HTTP/2, or a request with a transfer coding, which
    /// is the last on its connection.
    Done,
}

impl HeadScanner {
    /// Scans the next bytes. Returns whether they complete a head with both fields.
    fn scan(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((&byte, rest)) = bytes.split_first() {
            let skipped = self.skip_line(bytes);
            if skipped > 0 {
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            match &mut self.state {
                ScanState::Done => return false,
                ScanState::Body(left) => {
                    let count = usize::try_from(*left).map_or(bytes.len(), |n| n.min(bytes.len()));
                    *left -= count as u64;
                    if *left == 0 {
                        self.state = ScanState::RequestLine;
                    }
                    bytes = bytes.get(count..).unwrap_or_default();
                    continue;
                }
                _ if byte == b'\n' => {
                    if self.end_line() {
                        return true;
                    }
                }
                ScanState::Value => {
                    if byte.is_ascii_digit() {
                        let digit = u64::from(byte - b'0');
                        self.value = self.value.saturating_mul(10).saturating_add(digit);
                    }
                }
                ScanState::Name if byte == b':' => self.state = ScanState::Value,
                _ if byte == b'\r' => {}
                _ => self.push_name(byte),
            }
            bytes = rest;
        }
        false
    }

    /// Skips a line that is whole and cannot be one of the two fields: nearly all lines. Returns its
    /// length, or 0.
    fn skip_line(&mut self, bytes: &[u8]) -> usize {
        let is_irrelevant = self.name_len == 0
            && match (self.state, bytes) {
                // Line breaks may end the head.
                (ScanState::RequestLine | ScanState::Name, [b'\r' | b'\n', ..]) => false,
                (ScanState::RequestLine, [first, ..]) => !first.eq_ignore_ascii_case(&b'p'),
                (ScanState::Name, _) => ![CONTENT_LENGTH, TRANSFER_ENCODING]
                    .iter()
                    .any(|name| starts_with_name(bytes, name)),
                _ => false,
            };
        let mut rest = bytes;
        match is_irrelevant.then(|| rest.skip_until(b'\n')) {
            Some(Ok(len)) if bytes.get(len - 1) == Some(&b'\n') => {
                self.state = ScanState::Name;
                len
            }
            _ => 0,
        }
    }

    /// Stores a byte of a name. A name that is too long matches neither field.
    fn push_name(&mut self, byte: u8) {
        if let Some(slot) = self.name.get_mut(self.name_len) {
            *slot = byte.to_ascii_lowercase();
        }
        self.name_len += 1;
    }

    /// Handles a line break. Returns whether it ends a head with both fields.
    fn end_line(&mut self) -> bool {
        let is_empty = self.name_len == 0 && self.state != ScanState::Value;
        match self.state {
            // The parser skips empty lines before a request.
            ScanState::RequestLine if is_empty => {}
            ScanState::RequestLine if self.name.starts_with(b"pri ") => {
                self.state = ScanState::Done;
            }
            ScanState::RequestLine => self.state = ScanState::Name,
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
        self.state = ScanState::Name;
    }

    fn end_head(&mut self) -> bool {
        let is_ambiguous = self.has_coding && self.length.is_some();
        self.state = match self.length.take() {
            _ if self.has_coding => ScanState::Done,
            Some(len) if len > 0 => ScanState::Body(len),
            _ => ScanState::RequestLine,
        };
        is_ambiguous
    }
}

/// Returns whether the bytes may start with this name: they start with it, or they are a prefix of
/// it.
fn starts_with_name(bytes: &[u8], name: &[u8]) -> bool {
    let mut pairs = bytes.iter().zip(name);
    pairs.all(|(a, b)| a.eq_ignore_ascii_case(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ambiguous(text: &str) -> bool {
        let mut whole = HeadScanner::default();
        let found = whole.scan(text.as_bytes());
        // The result must not depend on how the bytes were split into reads.
        let mut split = HeadScanner::default();
        let by_byte = text.as_bytes().chunks(1).any(|byte| split.scan(byte));
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
            &format!("\r\n{first}{body}POST / HTTP/1.1\r\nContent-Length: 0\r\n{body}"),
        ] {
            assert!(is_ambiguous(text), "{text:?}");
        }
        for text in [
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            first,
            &format!("{first}{body}GET / HTTP/1.1\r\n{body}"),
            // Each request has only one of the fields. A `Content-Length` in the trailers of a
            // chunked body does not count.
            &format!("{first}{body}POST / HTTP/1.1\r\n{body}0\r\nContent-Length: 1\r\n\r\n"),
            "POST / HTTP/1.1\r\nX-Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length-X: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nContent-Length: 4\r\nTransfer-Encoding: x\r\n\r\n",
        ] {
            assert!(!is_ambiguous(text), "{text:?}");
        }
    }
}
