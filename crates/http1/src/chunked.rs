//! The chunked transfer coding (RFC 9112 section 7.1).

use crate::ProtocolError;

/// Maximum size of a chunk-size line in bytes, including white space and extensions.
const SIZE_LINE_BYTES_MAX: u16 = 4 << 10;
/// Maximum total size of the chunk extensions of a body, in bytes. The decoder ignores extensions.
/// Without this limit, a sender could send almost 4 KiB of extensions with each byte of data.
const EXTENSION_BYTES_MAX: u16 = 16 << 10;
/// Limits of the trailer section in bytes and fields. The decoder checks the fields and drops them.
const TRAILER_BYTES_MAX: u16 = 8 << 10;
const TRAILER_FIELDS_MAX: u8 = 100;
/// Maximum number of hexadecimal digits of a chunk size. A chunk is therefore smaller than 2^60
/// bytes.
const SIZE_DIGITS_MAX: u8 = 15;

/// A position in a chunked body. Decodes one framing byte at a time without a buffer, so that the
/// result never depends on how the bytes were split into reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkedDecoder {
    state: ChunkState,
    /// While a size line is read, the value of the digits read so far. While data is read, the
    /// number of remaining bytes of the chunk.
    size: u64,
    /// Number of bytes read so far from the current size line.
    line_bytes: u16,
    /// Number of extension bytes read so far in the whole body.
    extension_bytes: u16,
    trailer_bytes: u16,
    trailer_fields: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// Reading the digits of the size. The value is the number of digits read so far.
    Size(u8),
    /// Reading white space between the size and the extension or line break.
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

    /// Returns the number of data bytes before the next framing bytes.
    pub fn bytes_until_framing(&self) -> u64 {
        match self.state {
            ChunkState::Data => self.size,
            _ => 0,
        }
    }

    /// Records that the caller has taken `count` data bytes, which must be at most
    /// [`ChunkedDecoder::bytes_until_framing`].
    pub fn consume_data(&mut self, count: u64) {
        self.size = self.size.saturating_sub(count);
        if self.state == ChunkState::Data && self.size == 0 {
            self.state = ChunkState::DataCarriageReturn;
        }
    }

    /// Reads framing bytes up to the next data byte or the end of the body. Returns the number of
    /// framing bytes.
    ///
    /// # Errors
    /// When the framing is malformed or exceeds a limit.
    pub fn consume_framing(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut count = 0;
        for byte in bytes {
            if matches!(self.state, ChunkState::Data | ChunkState::End) {
                break;
            }
            self.consume_framing_byte(*byte)?;
            count += 1;
        }
        Ok(count)
    }

    fn consume_framing_byte(&mut self, byte: u8) -> Result<(), ProtocolError> {
        self.state = match self.state {
            ChunkState::Size(_) | ChunkState::Padding | ChunkState::Extension => {
                self.consume_size_line_byte(byte)?
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
            _ => self.consume_trailer_byte(byte)?,
        };
        Ok(())
    }

    /// Reads a byte of `chunk-size [ BWS ";" chunk-ext ] CR`. The line break must be CR LF.
    /// Recipients that also accept a lone LF may see a different end of an extension than strict
    /// recipients.
    fn consume_size_line_byte(&mut self, byte: u8) -> Result<ChunkState, ProtocolError> {
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

    fn consume_trailer_byte(&mut self, byte: u8) -> Result<ChunkState, ProtocolError> {
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

/// Returns whether the byte may occur in a field value: visible ASCII, space, tab or obs-text.
fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Returns whether the byte is a `tchar` of RFC 9110 section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Frames a body of unknown length as chunks. The caller writes the framing before and after the
/// data, so the data is not copied.
#[derive(Debug, Clone, Copy)]
pub struct ChunkEncoder;

impl ChunkEncoder {
    /// The framing bytes after the data of each chunk.
    pub const CHUNK_END: &[u8] = b"\r\n";
    /// The framing bytes after the last `CHUNK_END`: the zero-size chunk and an empty trailer
    /// section.
    pub const BODY_END: &[u8] = b"0\r\n\r\n";

    /// Appends the chunk-size line for `data_len` bytes of data. `data_len` must not be 0, because
    /// an empty chunk would end the body.
    pub fn write_chunk_start(out: &mut Vec<u8>, data_len: usize) {
        out.extend_from_slice(format!("{data_len:x}\r\n").as_bytes());
    }
}
