//! `stsd`: sample descriptions (8.5.2).

use super::{BoxIterator, Mp4Box, read_version_and_flags};
use crate::bytes::ByteReader;
use crate::error::{Error, ErrorKind, Result};

/// Maximum number of sample entries of a track.
pub const SAMPLE_ENTRIES_MAX: usize = 64;

/// Returns the sample entries of an `stsd` box. Each entry is a whole box.
///
/// # Errors
/// Returns `TooLarge` if there are more than [`SAMPLE_ENTRIES_MAX`] entries. Returns an error if
/// the size of an entry is invalid.
pub fn parse_stsd<'a>(stsd: &Mp4Box<'a>) -> Result<Vec<Mp4Box<'a>>> {
    let mut reader = ByteReader::new(stsd.body);
    read_version_and_flags(&mut reader);
    let count = reader.u32() as usize;
    reader.check_no_short_read()?;
    if count > SAMPLE_ENTRIES_MAX {
        let message =
            format!("there are {count} sample entries; at most {SAMPLE_ENTRIES_MAX} are read");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let inside = BoxIterator::new(reader.remaining_slice(), stsd.body_offset() + 8);
    inside.take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{write_box, write_full_box};

    fn build_stsd(count: u32) -> Vec<u8> {
        let mut out = Vec::new();
        write_full_box(&mut out, b"stsd", 0, 0, |out| {
            out.extend(count.to_be_bytes());
            write_box(out, b"avc1", |out| out.extend([7; 4]));
            write_box(out, b"mp4a", |_| ());
        });
        out
    }

    #[test]
    fn entries_are_whole_boxes() {
        let bytes = build_stsd(2);
        let found = parse_stsd(&Mp4Box::parse_first(&bytes, 100).unwrap()).unwrap();
        let flat: Vec<_> = found
            .iter()
            .map(|e| (e.name, e.offset, e.bytes.len()))
            .collect();
        assert_eq!(flat, [(*b"avc1", 116, 12), (*b"mp4a", 128, 8)]);
    }

    #[test]
    fn too_many_entries_are_refused_with_the_bound() {
        let bytes = build_stsd(u32::MAX);
        let error = parse_stsd(&Mp4Box::parse_first(&bytes, 0).unwrap()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(error.message.contains("at most 64"));
    }
}
