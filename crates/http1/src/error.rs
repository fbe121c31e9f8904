//! Violations of HTTP/1.1 that the codec detects.

use std::fmt;

/// The reason why received bytes are not a valid HTTP/1.1 response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The head is malformed, or is not HTTP at all.
    Head(httparse::Error),
    /// The head has more bytes or fields than [`HeadLimits`](crate::HeadLimits) allows.
    HeadTooLong,
    /// The status is outside 100 to 999.
    Status,
    /// A `Content-Length` is not a plain decimal number below 2^64.
    ContentLength,
    /// Two `Content-Length` fields differ.
    ContentLengths,
    /// The transfer coding is not exactly `chunked`, or an HTTP/1.0 response has a transfer coding.
    TransferEncoding,
    /// A chunk-size line is malformed, or the chunk size has more than 15 digits.
    ChunkSize,
    /// A chunk-size line is too long, or the total size of a body's chunk extensions exceeds the
    /// limit.
    ChunkExtensionsTooLong,
    /// A chunk's data is not followed by CR LF.
    ChunkEnd,
    /// A trailer field is malformed.
    Trailer,
    /// The trailer section has too many bytes or fields.
    TrailersTooLong,
    /// The connection was closed before the body's end.
    Truncated,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ProtocolError::Head(error) => return write!(f, "invalid response head: {error}"),
            ProtocolError::HeadTooLong => "response head too long",
            ProtocolError::Status => "invalid status code",
            ProtocolError::ContentLength => "invalid Content-Length",
            ProtocolError::ContentLengths => "contradictory Content-Length fields",
            ProtocolError::TransferEncoding => "unsupported Transfer-Encoding",
            ProtocolError::ChunkSize => "invalid chunk size",
            ProtocolError::ChunkExtensionsTooLong => "chunk extensions too long",
            ProtocolError::ChunkEnd => "chunk longer than its declared size",
            ProtocolError::Trailer => "invalid trailer field",
            ProtocolError::TrailersTooLong => "trailer section too long",
            ProtocolError::Truncated => "connection closed before the end of the body",
        };
        f.write_str(text)
    }
}

impl std::error::Error for ProtocolError {}
