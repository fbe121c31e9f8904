//! `sidx`: segment index (8.16.3).

use super::table::{entries, word};
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Where the stretches of a file that follow lie in time and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidx {
    /// `reference_ID`: the track it speaks of.
    pub track: u32,
    /// Ticks a second.
    pub timescale: u32,
    /// When the first reference is first shown, in ticks.
    pub earliest: u64,
    /// Bytes from the end of this box to the first reference.
    pub first_offset: u64,
    /// The stretches, one after another.
    pub references: Vec<Reference>,
}

/// One stretch of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Whether it is another sidx; else it is media.
    pub is_index: bool,
    /// Bytes.
    pub size: u32,
    /// Ticks.
    pub duration: u32,
    /// Whether it starts with a stream access point.
    pub starts_with_sap: bool,
}

impl Sidx {
    /// Reads the body of the box.
    ///
    /// # Errors
    /// `Truncated` if there are fewer references than it claims.
    pub fn parse(body: &[u8]) -> Result<Sidx> {
        let mut reader = Reader::new(body);
        let (version, _) = version_and_flags(&mut reader);
        let (track, timescale) = (reader.u32(), reader.u32());
        let mut long = || match version {
            0 => u64::from(reader.u32()),
            _ => reader.u64(),
        };
        let (earliest, first_offset) = (long(), long());
        reader.skip(2);
        let count = u32::from(reader.u16());
        let references = entries::<12>(&mut reader, count)?.iter();
        let references = references.map(|entry| Reference {
            is_index: word(entry, 0) >> 31 == 1,
            size: word(entry, 0) & (u32::MAX >> 1),
            duration: word(entry, 4),
            starts_with_sap: word(entry, 8) >> 31 == 1,
        });
        Ok(Sidx {
            track,
            timescale,
            earliest,
            first_offset,
            references: references.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let expected = Sidx {
            track: 1,
            timescale: 2,
            earliest: 3,
            first_offset: 4,
            references: vec![Reference {
                is_index: true,
                size: 5,
                duration: 6,
                starts_with_sap: true,
            }],
        };
        let tail = b"\0\0\0\x01\x80\0\0\x05\0\0\0\x06\x90\0\0\0";
        let mut narrow = b"\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04".to_vec();
        narrow.extend_from_slice(tail);
        assert_eq!(Sidx::parse(&narrow), Ok(expected.clone()));
        let mut wide =
            b"\x01\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04".to_vec();
        wide.extend_from_slice(tail);
        assert_eq!(Sidx::parse(&wide), Ok(expected));
        assert!(Sidx::parse(&wide[..wide.len() - 1]).is_err());
    }
}
