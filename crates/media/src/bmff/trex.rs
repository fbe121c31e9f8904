//! `trex`: sample defaults for the fragments of a track (8.8.3).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Sample defaults for fragments that do not contain their own values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trex {
    /// `track_ID`.
    pub track_id: u32,
    /// `default_sample_description_index`, the number of the sample entry, counted from 1.
    pub description_index: u32,
    /// Default duration of a sample, in ticks.
    pub default_sample_duration: u32,
    /// Default size of a sample, in bytes.
    pub default_sample_size: u32,
    /// Default flags of a sample (8.8.3.1).
    pub default_sample_flags: u32,
}

impl Trex {
    /// Parses the body.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Trex> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        let trex = Trex {
            track_id: reader.u32(),
            description_index: reader.u32(),
            default_sample_duration: reader.u32(),
            default_sample_size: reader.u32(),
            default_sample_flags: reader.u32(),
        };
        reader.check_no_short_read()?;
        Ok(trex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_parsed() {
        let body = b"\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\x01\x01\0\0";
        let expected = Trex {
            track_id: 1,
            description_index: 2,
            default_sample_duration: 3,
            default_sample_size: 4,
            default_sample_flags: 0x0101_0000,
        };
        assert_eq!(Trex::parse(body), Ok(expected));
        assert!(Trex::parse(&body[..23]).is_err());
    }
}
