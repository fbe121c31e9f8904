//! `tfhd`: track fragment header (8.8.7).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Track ID and sample defaults of a track fragment. For a sample default, `None` means the value
/// in the track's `trex` box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tfhd {
    /// `track_ID`.
    pub track_id: u32,
    /// File offset to which the data offsets are relative. `None` if the box contains no base data
    /// offset.
    pub base_data_offset: Option<u64>,
    /// `sample_description_index`, the number of the sample entry, counted from 1.
    pub description_index: Option<u32>,
    /// Default duration of a sample, in ticks.
    pub default_sample_duration: Option<u32>,
    /// Default size of a sample, in bytes.
    pub default_sample_size: Option<u32>,
    /// Default flags of a sample (8.8.3.1).
    pub default_sample_flags: Option<u32>,
    /// Whether data offsets are relative to the start of the `moof` box if there is no base data
    /// offset.
    pub base_is_moof: bool,
}

impl Tfhd {
    /// Parses the body.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Tfhd> {
        let mut reader = ByteReader::new(body);
        let (_, flags) = read_version_and_flags(&mut reader);
        let track = reader.u32();
        let base_data_offset = (flags & 1 != 0).then(|| reader.u64());
        let mut field = |bit: u32| (flags & bit != 0).then(|| reader.u32());
        let tfhd = Tfhd {
            track_id: track,
            base_data_offset,
            description_index: field(2),
            default_sample_duration: field(8),
            default_sample_size: field(0x10),
            default_sample_flags: field(0x20),
            base_is_moof: flags & 0x02_0000 != 0,
        };
        reader.check_no_short_read()?;
        Ok(tfhd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_or_none_may_be_present() {
        let none = Tfhd::parse(b"\0\x02\0\0\0\0\0\x07").unwrap();
        assert_eq!(
            none,
            Tfhd {
                track_id: 7,
                base_is_moof: true,
                ..Tfhd::default()
            }
        );
        let body =
            b"\0\0\0\x3b\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
        let all = Tfhd {
            track_id: 7,
            base_data_offset: Some(1 << 32),
            description_index: Some(2),
            default_sample_duration: Some(3),
            default_sample_size: Some(4),
            default_sample_flags: Some(5),
            base_is_moof: false,
        };
        assert_eq!(Tfhd::parse(body), Ok(all));
        assert!(Tfhd::parse(&body[..31]).is_err());
    }
}
