//! `mvhd`: movie header (8.2.2).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Timescale and duration of the whole movie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mvhd {
    /// Ticks per second of movie times, such as the durations in edit lists; 0 in broken files.
    pub timescale: u32,
    /// Duration in ticks. If the duration is unknown, the value is 0 or has all bits set.
    pub duration: u64,
}

impl Mvhd {
    /// Parses the body, which has version 0 or 1.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Mvhd> {
        let mut reader = ByteReader::new(body);
        let wide = read_version_and_flags(&mut reader).0 == 1;
        reader.skip(if wide { 16 } else { 8 });
        let timescale = reader.u32();
        let duration = if wide {
            reader.u64()
        } else {
            u64::from(reader.u32())
        };
        reader.check_no_short_read()?;
        Ok(Mvhd {
            timescale,
            duration,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        let mut narrow = vec![0; 20];
        narrow[14..16].copy_from_slice(&600u16.to_be_bytes());
        narrow[19] = 7;
        let expected = Mvhd {
            timescale: 600,
            duration: 7,
        };
        assert_eq!(Mvhd::parse(&narrow), Ok(expected));
        let mut wide = vec![0; 32];
        wide[0] = 1;
        wide[22..24].copy_from_slice(&600u16.to_be_bytes());
        wide[31] = 7;
        assert_eq!(Mvhd::parse(&wide), Ok(expected));
        assert!(Mvhd::parse(&wide[..31]).is_err());
    }
}
