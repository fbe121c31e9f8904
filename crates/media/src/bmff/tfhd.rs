//! `tfhd`: track fragment header (8.8.7).

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Whose fragment it is, and its defaults; `None`: as the track's `trex` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tfhd {
    /// `track_ID`.
    pub track: u32,
    /// Where in the file data offsets count from.
    pub base_data_offset: Option<u64>,
    /// Sample entry, from 1.
    pub description: Option<u32>,
    /// Ticks of a sample.
    pub duration: Option<u32>,
    /// Bytes of a sample.
    pub size: Option<u32>,
    /// Flags of a sample.
    pub flags: Option<u32>,
    /// Whether data offsets count from the moof box, where there is no base data offset.
    pub base_is_moof: bool,
}

impl Tfhd {
    /// Reads the body of the box.
    ///
    /// # Errors
    /// `Truncated` if it is too short.
    pub fn parse(body: &[u8]) -> Result<Tfhd> {
        let mut reader = Reader::new(body);
        let (_, flags) = version_and_flags(&mut reader);
        let track = reader.u32();
        let base_data_offset = (flags & 1 != 0).then(|| reader.u64());
        let mut field = |bit: u32| (flags & bit != 0).then(|| reader.u32());
        let tfhd = Tfhd {
            track,
            base_data_offset,
            description: field(2),
            duration: field(8),
            size: field(0x10),
            flags: field(0x20),
            base_is_moof: flags & 0x02_0000 != 0,
        };
        reader.done()?;
        Ok(tfhd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_and_none() {
        let none = Tfhd::parse(b"\0\x02\0\0\0\0\0\x07").unwrap();
        assert_eq!(
            none,
            Tfhd {
                track: 7,
                base_is_moof: true,
                ..Tfhd::default()
            }
        );
        let body =
            b"\0\0\0\x3b\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
        let all = Tfhd {
            track: 7,
            base_data_offset: Some(1 << 32),
            description: Some(2),
            duration: Some(3),
            size: Some(4),
            flags: Some(5),
            base_is_moof: false,
        };
        assert_eq!(Tfhd::parse(body), Ok(all));
        assert!(Tfhd::parse(&body[..31]).is_err());
    }
}
