//! `stco` and `co64`: offsets of chunks in the file (8.7.5).

use super::read_version_and_flags;
use super::table::read_entries;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Offsets of all chunks of a track in the file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkOffsets<'a> {
    /// Big-endian 32-bit offsets.
    Bits32(&'a [[u8; 4]]),
    /// Big-endian 64-bit offsets.
    Bits64(&'a [[u8; 8]]),
}

impl<'a> ChunkOffsets<'a> {
    /// Parses the body of an `stco` box.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer offsets than declared.
    pub fn parse_stco(body: &'a [u8]) -> Result<ChunkOffsets<'a>> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        let count = reader.u32();
        Ok(ChunkOffsets::Bits32(read_entries(&mut reader, count)?))
    }

    /// Parses the body of a `co64` box.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer offsets than declared.
    pub fn parse_co64(body: &'a [u8]) -> Result<ChunkOffsets<'a>> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        let count = reader.u32();
        Ok(ChunkOffsets::Bits64(read_entries(&mut reader, count)?))
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> u32 {
        match self {
            ChunkOffsets::Bits32(offsets) => offsets.len() as u32,
            ChunkOffsets::Bits64(offsets) => offsets.len() as u32,
        }
    }

    /// Returns whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the offset of chunk `n`, or `None` past the end. The first chunk is chunk 0.
    pub fn get(&self, n: u32) -> Option<u64> {
        match self {
            ChunkOffsets::Bits32(offsets) => {
                let offset = offsets.get(n as usize)?;
                Some(u64::from(u32::from_be_bytes(*offset)))
            }
            ChunkOffsets::Bits64(offsets) => {
                offsets.get(n as usize).map(|at| u64::from_be_bytes(*at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_are_parsed() {
        let short = ChunkOffsets::parse_stco(b"\0\0\0\0\0\0\0\x02\0\0\0\x07\xff\0\0\0").unwrap();
        assert_eq!((short.get(1), short.get(2)), (Some(0xff00_0000), None));
        let long = ChunkOffsets::parse_co64(b"\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0").unwrap();
        assert_eq!((long.len(), long.get(0)), (1, Some(1 << 32)));
        assert!(ChunkOffsets::parse_stco(b"\0\0\0\0\xff\xff\xff\xff").is_err());
        assert!(ChunkOffsets::parse_co64(b"\0\0\0\0\xff\xff\xff\xff").is_err());
    }
}
