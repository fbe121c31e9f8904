//! `trun`: a run of samples in a fragment (8.8.8).

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::{Error, Kind, Result};

/// A run of samples whose bytes follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trun<'a> {
    /// How many samples.
    pub count: u32,
    /// Where its bytes begin, from the fragment's base; `None`: where the last run ended.
    pub data_offset: Option<i32>,
    /// Flags of the first sample, instead of the default.
    pub first_flags: Option<u32>,
    present: u32,
    rows: &'a [u8],
}

/// What a run says of one sample; `None`: the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    /// Ticks.
    pub duration: Option<u32>,
    /// Bytes.
    pub size: Option<u32>,
    /// Flags.
    pub flags: Option<u32>,
    /// Composition offset in ticks; signed in version 0 too, as writers do in practice.
    pub cts: i32,
}

const FIELDS: [u32; 4] = [0x100, 0x200, 0x400, 0x800];

impl<'a> Trun<'a> {
    /// Reads the body of the box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer samples than it claims.
    pub fn parse(body: &'a [u8]) -> Result<Trun<'a>> {
        let mut reader = Reader::new(body);
        let (_, present) = version_and_flags(&mut reader);
        let count = reader.u32();
        let data_offset = (present & 1 != 0).then(|| reader.i32());
        let first_flags = (present & 4 != 0).then(|| reader.u32());
        reader.done()?;
        let run = Trun {
            count,
            data_offset,
            first_flags,
            present,
            rows: reader.rest(),
        };
        let room = run.rows.len() as u64;
        let wanted = u64::from(count) * run.row_len() as u64;
        if wanted > room {
            let what = format!("it claims {count} samples in {wanted} bytes, but has {room}");
            return Err(Error::new(Kind::Truncated, what));
        }
        Ok(run)
    }

    fn row_len(&self) -> usize {
        let fields = FIELDS.iter().filter(|field| self.present & **field != 0);
        fields.count() * 4
    }

    /// Bytes of all samples together, where those without a size have `default`.
    pub fn bytes(&self, default: u32) -> u64 {
        if self.present & 0x200 == 0 {
            return u64::from(self.count) * u64::from(default);
        }
        self.rows()
            .map(|row| u64::from(row.size.unwrap_or(0)))
            .sum()
    }

    /// What it says of each sample, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let mut reader = Reader::new(self.rows);
        let present = self.present;
        (0..self.count).map(move |_| {
            let mut field = |bit: u32| (present & bit != 0).then(|| reader.u32());
            Row {
                duration: field(0x100),
                size: field(0x200),
                flags: field(0x400),
                cts: field(0x800).unwrap_or(0) as i32,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_and_none() {
        let body = b"\x01\0\x0f\x05\0\0\0\x01\xff\xff\xff\xfe\x02\0\0\0\
            \0\0\0\x01\0\0\0\x02\0\0\0\x03\xff\xff\xff\xff";
        let run = Trun::parse(body).unwrap();
        assert_eq!((run.count, run.data_offset), (1, Some(-2)));
        assert_eq!(run.first_flags, Some(0x0200_0000));
        let row = Row {
            duration: Some(1),
            size: Some(2),
            flags: Some(3),
            cts: -1,
        };
        assert_eq!(run.rows().collect::<Vec<_>>(), [row]);
        assert_eq!(run.bytes(9), 2);
        assert!(Trun::parse(&body[..31]).is_err());
        let bare = Trun::parse(b"\0\0\0\0\0\0\0\x03").unwrap();
        assert_eq!(bare.rows().collect::<Vec<_>>(), [Row::default(); 3]);
        assert_eq!(bare.bytes(9), 27);
        let many = Trun::parse(b"\0\0\0\0\xff\xff\xff\xff").unwrap();
        assert_eq!(
            many.bytes(u32::MAX),
            u64::from(u32::MAX) * u64::from(u32::MAX)
        );
    }
}
