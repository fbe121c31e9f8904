//! The chunked transfer coding (RFC 9112 section 7.1).

use crate::ProtocolError;

/// Longest size line, with padding and extensions.
const SIZE_LINE_BYTES_MAX: u16 = 4 << 10;
/// Maximum size of the extensions of all chunks of a body together. They are ignored, so a sender
/// could otherwise make the recipient read forever without sending a byte of data.
const EXTENSION_BYTES_MAX: u16 = 16 << 10;
/// Limits of the trailer section, whose fields are checked and dropped.
const TRAILER_BYTES_MAX: u16 = 8 << 10;
const TRAILER_FIELDS_MAX: u8 = 100;
/// Maximum number of hexadecimal digits of a chunk's size, which is therefore less than 2^60 bytes.
const SIZE_DIGITS_MAX: u8 = 15;

/// A position in a chunked body. Decodes one framing byte at a time without a buffer, so that the
/// result never depends on how the bytes were split into reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkedDecoder {
    state: ChunkState,
    /// The value of the size line so far; within data, the remaining bytes of the chunk.
    size: u64,
    /// Bytes of the current size line.
    line_bytes: u16,
    /// Bytes of all extensions so far.
    extension_bytes: u16,
    trailer_bytes: u16,
    trailer_fields: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// Reading the digits of the size. The value is the number of digits read so far.
    Size(u8),
    /// Between the digits and the extension or line break.
    Padding,
    Extension,
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    EndLineFeed,
    End,
}

impl Default for ChunkedDecoder {
    fn default() -> ChunkedDecoder {
        ChunkedDecoder {
            state: ChunkState::Size(0),
            size: 0,
            line_bytes: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            trailer_fields: 0,
        }
    }
}

impl ChunkedDecoder {
    /// Returns whether the last chunk and the trailers have been read.
    pub fn is_complete(&self) -> bool {
        self.state == ChunkState::End
    }

    /// Returns the number of data bytes before the next framing.
    pub fn data_ahead(&self) -> u64 {
        match self.state {
            ChunkState::Data => self.size,
            _ => 0,
        }
    }

    /// Records that `count` data bytes were taken, at most [`ChunkedDecoder::data_ahead`].
    pub fn consume_data(&mut self, count: u64) {
        self.size = self.size.saturating_sub(count);
        if self.state == ChunkState::Data && self.size == 0 {
            self.state = ChunkState::DataCarriageReturn;
        }
    }

    /// Reads framing up to the next data byte or the body's end. Returns how many bytes that took.
    ///
    /// # Errors
    /// When the framing is malformed or over a limit.
    pub fn consume_framing(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut count = 0;
        for byte in bytes {
            if matches!(self.state, ChunkState::Data | ChunkState::End) {
                break;
            }
            self.step(*byte)?;
            count += 1;
        }
        Ok(count)
    }

    fn step(&mut self, byte: u8) -> Result<(), ProtocolError> {
        self.state = match self.state {
            ChunkState::Size(_) | ChunkState::Padding | ChunkState::Extension => {
                self.step_size_line(byte)?
            }
            ChunkState::SizeLineFeed if byte == b'\n' => match self.size {
                0 => ChunkState::TrailerStart,
                _ => ChunkState::Data,
            },
            ChunkState::SizeLineFeed => return Err(ProtocolError::ChunkSize),
            ChunkState::DataCarriageReturn if byte == b'\r' => ChunkState::DataLineFeed,
            ChunkState::DataLineFeed if byte == b'\n' => {
                self.line_bytes = 0;
                ChunkState::Size(0)
            }
            ChunkState::DataCarriageReturn | ChunkState::DataLineFeed => {
                return Err(ProtocolError::ChunkEnd);
            }
            _ => self.step_trailer(byte)?,
        };
        Ok(())
    }

    /// Reads a byte of `chunk-size [ BWS ";" chunk-ext ] CR`. The line break must be CR LF: a
    /// recipient that accepts a lone LF disagrees with others about where an extension stops.
    fn step_size_line(&mut self, byte: u8) -> Result<ChunkState, ProtocolError> {
        self.line_bytes += 1;
        if self.line_bytes > SIZE_LINE_BYTES_MAX {
            return Err(ProtocolError::ChunkExtensionsTooLong);
        }
        match (self.state, byte) {
            (ChunkState::Size(digits), byte) if byte.is_ascii_hexdigit() => {
                if digits >= SIZE_DIGITS_MAX {
                    return Err(ProtocolError::ChunkSize);
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                self.size = self.size << 4 | u64::from(digit);
                Ok(ChunkState::Size(digits + 1))
            }
            (ChunkState::Size(0), _) => Err(ProtocolError::ChunkSize),
            (_, b'\r') => Ok(ChunkState::SizeLineFeed),
            (ChunkState::Size(_) | ChunkState::Padding, b' ' | b'\t') => Ok(ChunkState::Padding),
            (ChunkState::Size(_) | ChunkState::Padding, b';') => Ok(ChunkState::Extension),
            (ChunkState::Extension, byte) if is_field_byte(byte) => {
                self.extension_bytes += 1;
                if self.extension_bytes > EXTENSION_BYTES_MAX {
                    return Err(ProtocolError::ChunkExtensionsTooLong);
                }
                Ok(ChunkState::Extension)
            }
            _ => Err(ProtocolError::ChunkSize),
        }
    }

    fn step_trailer(&mut self, byte: u8) -> Result<ChunkState, ProtocolError> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(ProtocolError::TrailersTooLong);
        }
        match (self.state, byte) {
            (ChunkState::TrailerStart, b'\r') => Ok(ChunkState::EndLineFeed),
            (ChunkState::EndLineFeed, b'\n') => Ok(ChunkState::End),
            (ChunkState::TrailerStart, byte) if is_token_byte(byte) => {
                self.trailer_fields += 1;
                if self.trailer_fields > TRAILER_FIELDS_MAX {
                    return Err(ProtocolError::TrailersTooLong);
                }
                Ok(ChunkState::TrailerName)
            }
            (ChunkState::TrailerName, b':') => Ok(ChunkState::TrailerValue),
            (ChunkState::TrailerName, byte) if is_token_byte(byte) => Ok(ChunkState::TrailerName),
            (ChunkState::TrailerValue, b'\r') => Ok(ChunkState::TrailerLineFeed),
            (ChunkState::TrailerValue, byte) if is_field_byte(byte) => Ok(ChunkState::TrailerValue),
            (ChunkState::TrailerLineFeed, b'\n') => Ok(ChunkState::TrailerStart),
            _ => Err(ProtocolError::Trailer),
        }
    }
}

/// Returns whether the byte is visible ASCII, space, tab or obs-text, and no control character.
fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Returns whether the byte is a `tchar` of RFC 9110 section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Frames a body of unknown length. Chunk framing is written before and after the data, which is
/// not copied.
#[derive(Debug, Clone, Copy)]
pub struct ChunkEncoder;

impl ChunkEncoder {
    /// Follows the data of each chunk.
    pub const CHUNK_END: &[u8] = b"\r\n";
    /// Ends the body, after the `CHUNK_END` of the final data: the zero-size chunk and an empty
    /// trailer section.
    pub const BODY_END: &[u8] = b"0\r\n\r\n";

    /// Appends the line that precedes `data_len` bytes of data. A chunk must not be empty: that
    /// would end the body.
    pub fn write_chunk_start(out: &mut Vec<u8>, data_len: usize) {
        out.extend_from_slice(format!("{data_len:x}\r\n").as_bytes());
    }
}
