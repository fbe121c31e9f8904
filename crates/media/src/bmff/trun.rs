//! `trun`: a run of samples in a fragment (8.8.8).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::{Error, ErrorKind, Result};

/// A run of samples whose bytes are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trun<'a> {
    /// Number of samples.
    pub sample_count: u32,
    /// Offset of the sample data, relative to the base of the track fragment. If `None`, the data
    /// follows the data of the previous run, or starts at the base if there is no previous run.
    pub data_offset: Option<i32>,
    /// Flags of the first sample, which replace the default flags.
    pub first_sample_flags: Option<u32>,
    field_flags: u32,
    sample_bytes: &'a [u8],
}

/// The fields of one sample in a run. `None` means the default of the fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrunSample {
    /// Duration in ticks.
    pub duration: Option<u32>,
    /// Size in bytes.
    pub size: Option<u32>,
    /// Flags (8.8.3.1).
    pub flags: Option<u32>,
    /// Composition offset in ticks. The offset is read as a signed number, even in version 0,
    /// because writers store negative offsets in version 0.
    pub composition_offset: i32,
}

const SAMPLE_FIELD_FLAGS: [u32; 4] = [0x100, 0x200, 0x400, 0x800];

impl<'a> Trun<'a> {
    /// Parses the body.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer samples than declared.
    pub fn parse(body: &'a [u8]) -> Result<Trun<'a>> {
        let mut reader = ByteReader::new(body);
        let (_, present) = read_version_and_flags(&mut reader);
        let count = reader.u32();
        let data_offset = (present & 1 != 0).then(|| reader.i32());
        let first_flags = (present & 4 != 0).then(|| reader.u32());
        reader.check_no_short_read()?;
        let run = Trun {
            sample_count: count,
            data_offset,
            first_sample_flags: first_flags,
            field_flags: present,
            sample_bytes: reader.remaining_slice(),
        };
        let room = run.sample_bytes.len() as u64;
        let wanted = u64::from(count) * run.bytes_per_sample() as u64;
        if wanted > room {
            let message = format!(
                "{count} samples in {wanted} bytes are declared, but there are {room} bytes"
            );
            return Err(Error::new(ErrorKind::Truncated, message));
        }
        Ok(run)
    }

    fn bytes_per_sample(&self) -> usize {
        let fields = SAMPLE_FIELD_FLAGS
            .iter()
            .filter(|field| self.field_flags & **field != 0);
        fields.count() * 4
    }

    /// Returns the sum of the sample sizes, in bytes. If the run contains no sizes, each sample has
    /// `default` bytes.
    pub fn total_bytes(&self, default: u32) -> u64 {
        if self.field_flags & 0x200 == 0 {
            return u64::from(self.sample_count) * u64::from(default);
        }
        self.samples()
            .map(|row| u64::from(row.size.unwrap_or(0)))
            .sum()
    }

    /// Iterates over the fields of each sample, in order.
    pub fn samples(&self) -> impl Iterator<Item = TrunSample> + '_ {
        let mut reader = ByteReader::new(self.sample_bytes);
        let present = self.field_flags;
        (0..self.sample_count).map(move |_| {
            let mut field = |bit: u32| (present & bit != 0).then(|| reader.u32());
            TrunSample {
                duration: field(0x100),
                size: field(0x200),
                flags: field(0x400),
                composition_offset: field(0x800).unwrap_or(0) as i32,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_or_none_may_be_present() {
        let body = b"\x01\0\x0f\x05\0\0\0\x01\xff\xff\xff\xfe\x02\0\0\0\
            \0\0\0\x01\0\0\0\x02\0\0\0\x03\xff\xff\xff\xff";
        let run = Trun::parse(body).unwrap();
        assert_eq!((run.sample_count, run.data_offset), (1, Some(-2)));
        assert_eq!(run.first_sample_flags, Some(0x0200_0000));
        let row = TrunSample {
            duration: Some(1),
            size: Some(2),
            flags: Some(3),
            composition_offset: -1,
        };
        assert_eq!(run.samples().collect::<Vec<_>>(), [row]);
        assert_eq!(run.total_bytes(9), 2);
        assert!(Trun::parse(&body[..31]).is_err());
        let bare = Trun::parse(b"\0\0\0\0\0\0\0\x03").unwrap();
        assert_eq!(
            bare.samples().collect::<Vec<_>>(),
            [TrunSample::default(); 3]
        );
        assert_eq!(bare.total_bytes(9), 27);
        let many = Trun::parse(b"\0\0\0\0\xff\xff\xff\xff").unwrap();
        assert_eq!(
            many.total_bytes(u32::MAX),
            u64::from(u32::MAX) * u64::from(u32::MAX)
        );
    }
}
