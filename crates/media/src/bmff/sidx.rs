//! `sidx`: segment index (8.16.3).

use super::read_version_and_flags;
use super::table::{entry_u32, read_entries};
use crate::bytes::ByteReader;
use crate::error::Result;

/// Times and byte ranges of the subsegments that follow the box in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidx {
    /// Ticks per second.
    pub timescale: u32,
    /// Presentation time of the first subsegment, in ticks.
    pub earliest_presentation_time: u64,
    /// Number of bytes from the end of the `sidx` box to the first subsegment.
    pub first_offset: u64,
    /// The references, in file order.
    pub references: Vec<SidxReference>,
}

/// A reference to one subsegment, or to another `sidx` box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SidxReference {
    /// Whether the reference points to another `sidx` box instead of media.
    pub is_index: bool,
    /// `referenced_size`, the number of referenced bytes.
    pub referenced_bytes: u32,
    /// Duration of the subsegment in ticks.
    pub subsegment_duration: u32,
}

impl Sidx {
    /// Parses the body, which has version 0 or 1.
    ///
    /// # Errors
    /// Returns `Truncated` if there are fewer references than declared.
    pub fn parse(body: &[u8]) -> Result<Sidx> {
        let mut reader = ByteReader::new(body);
        let (version, _) = read_version_and_flags(&mut reader);
        // Skips reference_ID.
        reader.skip(4);
        let timescale = reader.u32();
        let mut long = || match version {
            0 => u64::from(reader.u32()),
            _ => reader.u64(),
        };
        let (earliest, first_offset) = (long(), long());
        reader.skip(2);
        let count = u32::from(reader.u16());
        let references = read_entries::<12>(&mut reader, count)?.iter();
        let references = references.map(|entry| SidxReference {
            is_index: entry_u32(entry, 0) >> 31 == 1,
            referenced_bytes: entry_u32(entry, 0) & (u32::MAX >> 1),
            subsegment_duration: entry_u32(entry, 4),
        });
        Ok(Sidx {
            timescale,
            earliest_presentation_time: earliest,
            first_offset,
            references: references.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        let expected = Sidx {
            timescale: 2,
            earliest_presentation_time: 3,
            first_offset: 4,
            references: vec![SidxReference {
                is_index: true,
                referenced_bytes: 5,
                subsegment_duration: 6,
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
