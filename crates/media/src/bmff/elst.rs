//! `elst`: edit list (8.6.6).

use super::read_version_and_flags;
use super::table::{entry_u32, read_entries};
use crate::bytes::ByteReader;
use crate::error::Result;

/// One edit, which maps a part of the movie's timeline to the media of the track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditListEntry {
    /// Duration in ticks of the movie's timescale; 0 means until the end of the media.
    pub duration: u64,
    /// Start time in the media, in ticks of the track. The value -1 marks an empty edit, which
    /// presents no media.
    pub media_time: i64,
    /// Playback speed as a 16.16 number. The value 0 shows one picture for the whole duration.
    pub rate: u32,
}

/// Parses the body, which has version 0 or 1.
///
/// # Errors
/// Returns `Truncated` if there are fewer entries than declared.
pub fn parse_elst(body: &[u8]) -> Result<Vec<EditListEntry>> {
    let mut reader = ByteReader::new(body);
    let wide = read_version_and_flags(&mut reader).0 == 1;
    let count = reader.u32();
    if wide {
        let edits = read_entries::<20>(&mut reader, count)?.iter().map(|entry| {
            let long =
                |at| (u64::from(entry_u32(entry, at)) << 32) | u64::from(entry_u32(entry, at + 4));
            EditListEntry {
                duration: long(0),
                media_time: long(8) as i64,
                rate: entry_u32(entry, 16),
            }
        });
        return Ok(edits.collect());
    }
    let edits = read_entries::<12>(&mut reader, count)?
        .iter()
        .map(|entry| EditListEntry {
            duration: u64::from(entry_u32(entry, 0)),
            media_time: i64::from(entry_u32(entry, 4) as i32),
            rate: entry_u32(entry, 8),
        });
    Ok(edits.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        let expected = [EditListEntry {
            duration: 5,
            media_time: -1,
            rate: 0x10000,
        }];
        let narrow = b"\0\0\0\0\0\0\0\x01\0\0\0\x05\xff\xff\xff\xff\0\x01\0\0";
        assert_eq!(parse_elst(narrow).unwrap(), expected);
        let wide =
            b"\x01\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\xff\xff\xff\xff\xff\xff\xff\xff\0\x01\0\0";
        assert_eq!(parse_elst(wide).unwrap(), expected);
        assert!(parse_elst(&wide[..27]).is_err());
    }
}
