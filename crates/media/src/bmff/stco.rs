//! `stco` and `co64`: where chunks lie in the file (8.7.5).

use super::table::entries;
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Offsets of all chunks of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offsets<'a> {
    /// 32 bits each.
    Short(&'a [[u8; 4]]),
    /// 64 bits each.
    Long(&'a [[u8; 8]]),
}

impl<'a> Offsets<'a> {
    /// Reads the body of an stco box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer offsets than it claims.
    pub fn stco(body: &'a [u8]) -> Result<Offsets<'a>> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        let count = reader.u32();
        Ok(Offsets::Short(entries(&mut reader, count)?))
    }

    /// Reads the body of a co64 box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer offsets than it claims.
    pub fn co64(body: &'a [u8]) -> Result<Offsets<'a>> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        let count = reader.u32();
        Ok(Offsets::Long(entries(&mut reader, count)?))
    }

    /// How many chunks.
    pub fn len(&self) -> u32 {
        match self {
            Offsets::Short(offsets) => offsets.len() as u32,
            Offsets::Long(offsets) => offsets.len() as u32,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset of chunk `n`, from 0, in the file.
    pub fn get(&self, n: u32) -> Option<u64> {
        match self {
            Offsets::Short(offsets) => {
                let offset = offsets.get(n as usize)?;
                Some(u64::from(u32::from_be_bytes(*offset)))
            }
            Offsets::Long(offsets) => offsets.get(n as usize).map(|at| u64::from_be_bytes(*at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths() {
        let short = Offsets::stco(b"\0\0\0\0\0\0\0\x02\0\0\0\x07\xff\0\0\0").unwrap();
        assert_eq!((short.get(1), short.get(2)), (Some(0xff00_0000), None));
        let long = Offsets::co64(b"\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0").unwrap();
        assert_eq!((long.len(), long.get(0)), (1, Some(1 << 32)));
        assert!(Offsets::stco(b"\0\0\0\0\xff\xff\xff\xff").is_err());
        assert!(Offsets::co64(b"\0\0\0\0\xff\xff\xff\xff").is_err());
    }
}
