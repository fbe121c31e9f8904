//! `stsz` and `stz2`: sample sizes (8.7.3).

use super::table::entries;
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::{Error, Result};

/// Sizes of all samples of a track, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes<'a> {
    /// All have one size: that, and how many.
    Same(u32, u32),
    /// Each its own, in 32 bits.
    Words(&'a [[u8; 4]]),
    /// Each its own, in 16 bits.
    Halves(&'a [[u8; 2]]),
    /// Each its own, in 8 bits.
    Bytes(&'a [u8]),
    /// Each its own, in 4 bits, high half first; and how many.
    Nibbles(&'a [u8], u32),
}

impl<'a> Sizes<'a> {
    /// Reads the body of an stsz box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer sizes than it claims.
    pub fn stsz(body: &'a [u8]) -> Result<Sizes<'a>> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        let (same, count) = (reader.u32(), reader.u32());
        reader.done()?;
        if same != 0 {
            return Ok(Sizes::Same(same, count));
        }
        Ok(Sizes::Words(entries(&mut reader, count)?))
    }

    /// Reads the body of an stz2 box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer sizes than it claims; `Malformed` if they have a width
    /// other than 4, 8 or 16 bits.
    pub fn stz2(body: &'a [u8]) -> Result<Sizes<'a>> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        reader.skip(3);
        let (bits, count) = (reader.u8(), reader.u32());
        Ok(match bits {
            16 => Sizes::Halves(entries(&mut reader, count)?),
            8 => Sizes::Bytes(entries::<1>(&mut reader, count)?.as_flattened()),
            4 => {
                let bytes = entries::<1>(&mut reader, count.div_ceil(2))?;
                Sizes::Nibbles(bytes.as_flattened(), count)
            }
            _ => {
                let what = format!("sizes of {bits} bits are none of 4, 8 and 16");
                return Err(Error::malformed(what));
            }
        })
    }

    /// How many samples.
    pub fn len(&self) -> u32 {
        match self {
            Sizes::Same(_, count) | Sizes::Nibbles(_, count) => *count,
            Sizes::Words(words) => words.len() as u32,
            Sizes::Halves(halves) => halves.len() as u32,
            Sizes::Bytes(bytes) => bytes.len() as u32,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of sample `n`, from 0; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        let at = n as usize;
        match self {
            Sizes::Same(size, count) => *size * u32::from(n < *count),
            Sizes::Words(words) => words.get(at).map_or(0, |word| u32::from_be_bytes(*word)),
            Sizes::Halves(halves) => {
                let half = halves.get(at).copied().unwrap_or_default();
                u32::from(u16::from_be_bytes(half))
            }
            Sizes::Bytes(bytes) => u32::from(bytes.get(at).copied().unwrap_or(0)),
            // Of an odd number the last byte has a half too many.
            Sizes::Nibbles(_, count) if n >= *count => 0,
            Sizes::Nibbles(bytes, _) => {
                let byte = bytes.get(at / 2).copied().unwrap_or(0);
                u32::from(if n.is_multiple_of(2) {
                    byte >> 4
                } else {
                    byte & 15
                })
            }
        }
    }

    /// All sizes together, in bytes.
    pub fn sum(&self) -> u64 {
        match self {
            Sizes::Same(size, count) => u64::from(*size) * u64::from(*count),
            _ => (0..self.len()).map(|n| u64::from(self.get(n))).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(sizes: Sizes<'_>) -> Vec<u32> {
        (0..sizes.len()).map(|n| sizes.get(n)).collect()
    }

    #[test]
    fn every_width() {
        let same = Sizes::stsz(b"\0\0\0\0\0\0\0\x09\xff\xff\xff\xff").unwrap();
        assert_eq!((same.len(), same.get(5)), (u32::MAX, 9));
        assert_eq!(same.sum(), 9 * u64::from(u32::MAX));
        let words = b"\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x07\x01\0\0\0";
        assert_eq!(all(Sizes::stsz(words).unwrap()), [7, 1 << 24]);
        assert!(Sizes::stsz(&words[..19]).is_err());
        let halves = b"\0\0\0\0\0\0\0\x10\0\0\0\x02\0\x07\x01\0";
        assert_eq!(all(Sizes::stz2(halves).unwrap()), [7, 256]);
        let bytes = b"\0\0\0\0\0\0\0\x08\0\0\0\x02\x07\xff";
        assert_eq!(all(Sizes::stz2(bytes).unwrap()), [7, 255]);
        let nibbles = b"\0\0\0\0\0\0\0\x04\0\0\0\x03\x7f\x10";
        let nibbles = Sizes::stz2(nibbles).unwrap();
        assert_eq!(all(nibbles), [7, 15, 1]);
        assert_eq!(Sizes::Nibbles(&[0x12], 1).get(1), 0);
        assert_eq!(nibbles.sum(), 23);
        assert!(Sizes::stz2(b"\0\0\0\0\0\0\0\x05\0\0\0\x01\x07").is_err());
    }

    #[test]
    fn four_billion_samples_claimed_in_a_tiny_box_are_refused() {
        let error = Sizes::stsz(b"\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\x01").unwrap_err();
        assert!(error.what.contains("4294967295"), "{error}");
    }
}
