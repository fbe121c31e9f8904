//! Body framing: where a response's body ends (RFC 9112 section 6.3).

use crate::{ChunkedDecoder, ProtocolError};
use std::ops::Range;

/// Separates body bytes from framing, and detects the end of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyDecoder {
    /// A body of declared length, with the number of remaining bytes.
    Length(u64),
    /// A chunked body, which ends with the last chunk and the trailer section.
    Chunked(ChunkedDecoder),
    /// A body that ends when the connection is closed.
    UntilClose,
    /// The connection was closed, which completed the body.
    Closed,
}

impl BodyDecoder {
    /// Returns whether the end of the body has been reached.
    pub fn is_complete(&self) -> bool {
        match self {
            BodyDecoder::Length(remaining) => *remaining == 0,
            BodyDecoder::Chunked(chunks) => chunks.is_complete(),
            BodyDecoder::UntilClose => false,
            BodyDecoder::Closed => true,
        }
    }

    /// Returns the number of remaining body bytes, if the head declared the body's length or the
    /// body is complete.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            BodyDecoder::Length(remaining) => Some(*remaining),
            _ => self.is_complete().then_some(0),
        }
    }

    /// Returns the number of body bytes before the next framing bytes (such as a chunk-size line).
    /// Returns 0 if framing bytes are next. The caller may read these body bytes without the
    /// decoder and then report them to [`BodyDecoder::consume_data`].
    pub fn bytes_until_framing(&self) -> u64 {
        match self {
            BodyDecoder::Length(remaining) => *remaining,
            BodyDecoder::Chunked(chunks) => chunks.bytes_until_framing(),
            BodyDecoder::UntilClose => u64::MAX,
            BodyDecoder::Closed => 0,
        }
    }

    /// Records that the caller has taken `count` body bytes, which must be at most
    /// [`BodyDecoder::bytes_until_framing`].
    pub fn consume_data(&mut self, count: u64) {
        match self {
            BodyDecoder::Length(remaining) => *remaining = remaining.saturating_sub(count),
            BodyDecoder::Chunked(chunks) => chunks.consume_data(count),
            BodyDecoder::UntilClose | BodyDecoder::Closed => {}
        }
    }

    /// Returns the range of `received` that contains the next body bytes. The decoder consumes all
    /// bytes before the end of this range. An empty range means that the body is complete, or that
    /// the caller must receive more bytes.
    ///
    /// # Errors
    /// When the chunks are malformed or their framing exceeds a limit.
    pub fn next_data(&mut self, received: &[u8]) -> Result<Range<usize>, ProtocolError> {
        let start = match self {
            BodyDecoder::Chunked(chunks) => chunks.consume_framing(received)?,
            _ => 0,
        };
        let available = received.len() - start;
        let len = usize::try_from(self.bytes_until_framing())
            .map_or(available, |data| data.min(available));
        self.consume_data(len as u64);
        Ok(start..start + len)
    }

    /// Ends the body when the connection has been closed.
    ///
    /// # Errors
    /// [`ProtocolError::Truncated`] when the body is incomplete.
    pub fn decode_eof(&mut self) -> Result<(), ProtocolError> {
        match self {
            BodyDecoder::UntilClose => *self = BodyDecoder::Closed,
            body if body.is_complete() => {}
            _ => return Err(ProtocolError::Truncated),
        }
        Ok(())
    }
}
