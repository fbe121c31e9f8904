//! Body framing: where a response's body ends (RFC 9112 section 6.3).

use crate::{ChunkedDecoder, ProtocolError};
use std::ops::Range;

/// Separates body bytes from framing, and detects the end of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyDecoder {
    /// This many bytes remain.
    Length(u64),
    /// Chunks, the last of which ends the body.
    Chunked(ChunkedDecoder),
    /// All bytes until the connection is closed.
    UntilClose,
    /// The connection was closed, which completed the body.
    Closed,
}

impl BodyDecoder {
    /// Returns whether nothing more belongs to the body.
    pub fn is_complete(&self) -> bool {
        match self {
            BodyDecoder::Length(remaining) => *remaining == 0,
            BodyDecoder::Chunked(chunks) => chunks.is_complete(),
            BodyDecoder::UntilClose => false,
            BodyDecoder::Closed => true,
        }
    }

    /// Returns how many bytes of the body remain, if the head declared its length.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            BodyDecoder::Length(remaining) => Some(*remaining),
            _ => self.is_complete().then_some(0),
        }
    }

    /// Returns the number of body bytes before the next framing bytes (such as a chunk-size line);
    /// 0 if framing bytes are next. The caller may read them without the decoder and report them to
    /// [`BodyDecoder::consume_data`].
    pub fn data_ahead(&self) -> u64 {
        match self {
            BodyDecoder::Length(remaining) => *remaining,
            BodyDecoder::Chunked(chunks) => chunks.data_ahead(),
            BodyDecoder::UntilClose => u64::MAX,
            BodyDecoder::Closed => 0,
        }
    }

    /// Records that `count` body bytes were taken, at most [`BodyDecoder::data_ahead`].
    pub fn consume_data(&mut self, count: u64) {
        match self {
            BodyDecoder::Length(remaining) => *remaining = remaining.saturating_sub(count),
            BodyDecoder::Chunked(chunks) => chunks.consume_data(count),
            BodyDecoder::UntilClose | BodyDecoder::Closed => {}
        }
    }

    /// Returns the range of `received` that is the next run of body bytes. Everything before its
    /// end is consumed. An empty range means that the body is complete, or that more must be
    /// received.
    ///
    /// # Errors
    /// When the chunks are malformed or their framing exceeds a limit.
    pub fn next_data(&mut self, received: &[u8]) -> Result<Range<usize>, ProtocolError> {
        let start = match self {
            BodyDecoder::Chunked(chunks) => chunks.consume_framing(received)?,
            _ => 0,
        };
        let available = received.len() - start;
        let len = usize::try_from(self.data_ahead()).map_or(available, |data| data.min(available));
        self.consume_data(len as u64);
        Ok(start..start + len)
    }

    /// Ends the body at the end of the stream, when the connection was closed.
    ///
    /// # Errors
    /// [`ProtocolError::Truncated`] when the body has no end yet.
    pub fn decode_eof(&mut self) -> Result<(), ProtocolError> {
        match self {
            BodyDecoder::UntilClose => *self = BodyDecoder::Closed,
            body if body.is_complete() => {}
            _ => return Err(ProtocolError::Truncated),
        }
        Ok(())
    }
}
