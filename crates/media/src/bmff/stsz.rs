//! `stsz` and `stz2`: sample sizes (8.7.3).

use super::read_version_and_flags;
use super::table::read_entries;
use crate::bytes::ByteReader;
use crate::error::{Error, Result};

/// Sizes of all samples of a track, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSizes<'a> {
    /// All samples have the same size. The fields are that size and the number of samples.
    Constant(u32, u32),
    /// Big-endian 32-bit sizes.
    Bits32(&'a [[u8; 4]]),
    /// Big-endian 16-bit sizes.
    Bits16(&'a [[u8; 2]]),
    /// 8-bit sizes.
    Bits8(&'a [u8]),
    /// 4-bit sizes, with the high nibble first. The second field is the number of samples.
    Bits4(&'a [u8], u32),
}

impl<'a> SampleSizes<'a> {
    /// Parses the body of an `stsz` box.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer sizes than declared.
    pub fn parse_stsz(body: &'a [u8]) -> Result<SampleSizes<'a>> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        let (same, count) = (reader.u32(), reader.u32());
        reader.check_no_short_read()?;
        if same != 0 {
            return Ok(SampleSizes::Constant(same, count));
        }
        Ok(SampleSizes::Bits32(read_entries(&mut reader, count)?))
    }

    /// Parses the body of an `stz2` box.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer sizes than declared. Returns `Malformed` if the field
    /// size is not 4, 8 or 16 bits.
    pub fn parse_stz2(body: &'a [u8]) -> Result<SampleSizes<'a>> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        reader.skip(3);
        let (bits, count) = (reader.u8(), reader.u32());
        Ok(match bits {
            16 => SampleSizes::Bits16(read_entries(&mut reader, count)?),
            8 => SampleSizes::Bits8(read_entries::<1>(&mut reader, count)?.as_flattened()),
            4 => {
                let bytes = read_entries::<1>(&mut reader, count.div_ceil(2))?;
                SampleSizes::Bits4(bytes.as_flattened(), count)
            }
            _ => {
                let message =
                    format!("sample sizes of {bits} bits; only 4, 8 and 16 bits are valid");
                return Err(Error::malformed(message));
            }
        })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> u32 {
        match self {
            SampleSizes::Constant(_, count) | SampleSizes::Bits4(_, count) => *count,
            SampleSizes::Bits32(words) => words.len() as u32,
            SampleSizes::Bits16(halves) => halves.len() as u32,
            SampleSizes::Bits8(bytes) => bytes.len() as u32,
        }
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of sample `n` in bytes, or 0 past the end. The first sample is sample 0.
    pub fn get(&self, n: u32) -> u32 {
        let at = n as usize;
        match self {
            SampleSizes::Constant(size, count) => *size * u32::from(n < *count),
            SampleSizes::Bits32(words) => words.get(at).map_or(0, |word| u32::from_be_bytes(*word)),
            SampleSizes::Bits16(halves) => {
                let half = halves.get(at).copied().unwrap_or_default();
                u32::from(u16::from_be_bytes(half))
            }
            SampleSizes::Bits8(bytes) => u32::from(bytes.get(at).copied().unwrap_or(0)),
            // The low nibble of the last byte is padding if the number of samples is odd.
            SampleSizes::Bits4(_, count) if n >= *count => 0,
            SampleSizes::Bits4(bytes, _) => {
                let byte = bytes.get(at / 2).copied().unwrap_or(0);
                u32::from(if n.is_multiple_of(2) {
                    byte >> 4
                } else {
                    byte & 15
                })
            }
        }
    }

    /// Returns the sum of all sizes, in bytes.
    pub fn total_bytes(&self) -> u64 {
        match self {
            SampleSizes::Constant(size, count) => u64::from(*size) * u64::from(*count),
            _ => (0..self.len()).map(|n| u64::from(self.get(n))).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_sizes(sizes: SampleSizes<'_>) -> Vec<u32> {
        (0..sizes.len()).map(|n| sizes.get(n)).collect()
    }

    #[test]
    fn every_width_is_parsed() {
        let same = SampleSizes::parse_stsz(b"\0\0\0\0\0\0\0\x09\xff\xff\xff\xff").unwrap();
        assert_eq!((same.len(), same.get(5)), (u32::MAX, 9));
        assert_eq!(same.total_bytes(), 9 * u64::from(u32::MAX));
        let words = b"\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x07\x01\0\0\0";
        assert_eq!(
            collect_sizes(SampleSizes::parse_stsz(words).unwrap()),
            [7, 1 << 24]
        );
        assert!(SampleSizes::parse_stsz(&words[..19]).is_err());
        let halves = b"\0\0\0\0\0\0\0\x10\0\0\0\x02\0\x07\x01\0";
        assert_eq!(
            collect_sizes(SampleSizes::parse_stz2(halves).unwrap()),
            [7, 256]
        );
        let bytes = b"\0\0\0\0\0\0\0\x08\0\0\0\x02\x07\xff";
        assert_eq!(
            collect_sizes(SampleSizes::parse_stz2(bytes).unwrap()),
            [7, 255]
        );
        let nibbles = b"\0\0\0\0\0\0\0\x04\0\0\0\x03\x7f\x10";
        let nibbles = SampleSizes::parse_stz2(nibbles).unwrap();
        assert_eq!(collect_sizes(nibbles), [7, 15, 1]);
        assert_eq!(SampleSizes::Bits4(&[0x12], 1).get(1), 0);
        assert_eq!(nibbles.total_bytes(), 23);
        assert!(SampleSizes::parse_stz2(b"\0\0\0\0\0\0\0\x05\0\0\0\x01\x07").is_err());
    }

    #[test]
    fn four_billion_samples_claimed_in_a_tiny_box_are_refused() {
        let error =
            SampleSizes::parse_stsz(b"\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\x01").unwrap_err();
        assert!(error.message.contains("4294967295"), "{error}");
    }
}
