//! `trex`: defaults for the fragments of a track (8.8.3).

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// What fragments take where they say nothing themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trex {
    /// `track_ID`.
    pub track: u32,
    /// Sample entry, from 1.
    pub description: u32,
    /// Ticks of a sample.
    pub duration: u32,
    /// Bytes of a sample.
    pub size: u32,
    /// Flags of a sample.
    pub flags: u32,
}

impl Trex {
    /// Reads the body of the box.
    ///
    /// # Errors
    /// `Truncated` if it is too short.
    pub fn parse(body: &[u8]) -> Result<Trex> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        let trex = Trex {
            track: reader.u32(),
            description: reader.u32(),
            duration: reader.u32(),
            size: reader.u32(),
            flags: reader.u32(),
        };
        reader.done()?;
        Ok(trex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let body = b"\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\x01\x01\0\0";
        let expected = Trex {
            track: 1,
            description: 2,
            duration: 3,
            size: 4,
            flags: 0x0101_0000,
        };
        assert_eq!(Trex::parse(body), Ok(expected));
        assert!(Trex::parse(&body[..23]).is_err());
    }
}
