//! `elst`: edit list (8.6.6).

use super::table::{entries, word};
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// One edit: a stretch of the film's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// Its length, in ticks of the movie header; 0: to the end of the media.
    pub duration: u64,
    /// Where in the media it begins, in ticks of the track; -1: nothing is shown.
    pub media_time: i64,
    /// Speed as 16.16; 0 holds a picture still.
    pub rate: u32,
}

/// Reads the body of the box.
///
/// # Errors
/// `Truncated` if there are fewer entries than it claims.
pub fn parse(body: &[u8]) -> Result<Vec<Edit>> {
    let mut reader = Reader::new(body);
    let wide = version_and_flags(&mut reader).0 == 1;
    let count = reader.u32();
    if wide {
        let edits = entries::<20>(&mut reader, count)?.iter().map(|entry| {
            let long = |at| (u64::from(word(entry, at)) << 32) | u64::from(word(entry, at + 4));
            Edit {
                duration: long(0),
                media_time: long(8) as i64,
                rate: word(entry, 16),
            }
        });
        return Ok(edits.collect());
    }
    let edits = entries::<12>(&mut reader, count)?.iter().map(|entry| Edit {
        duration: u64::from(word(entry, 0)),
        media_time: i64::from(word(entry, 4) as i32),
        rate: word(entry, 8),
    });
    Ok(edits.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let expected = [Edit {
            duration: 5,
            media_time: -1,
            rate: 0x10000,
        }];
        let narrow = b"\0\0\0\0\0\0\0\x01\0\0\0\x05\xff\xff\xff\xff\0\x01\0\0";
        assert_eq!(parse(narrow).unwrap(), expected);
        let wide =
            b"\x01\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\xff\xff\xff\xff\xff\xff\xff\xff\0\x01\0\0";
        assert_eq!(parse(wide).unwrap(), expected);
        assert!(parse(&wide[..27]).is_err());
    }
}
