//! `stsd`: sample descriptions (8.5.2).

use super::{Children, Mp4Box, version_and_flags};
use crate::bytes::Reader;
use crate::error::{Error, Kind, Result};

/// How many sample entries a track may have.
pub const ENTRIES_MAX: usize = 64;

/// The sample entries of an stsd box, each a whole box.
///
/// # Errors
/// `TooLarge` beyond [`ENTRIES_MAX`]; else what is wrong with an entry's size.
pub fn parse<'a>(stsd: &Mp4Box<'a>) -> Result<Vec<Mp4Box<'a>>> {
    let mut reader = Reader::new(stsd.body);
    version_and_flags(&mut reader);
    let count = reader.u32() as usize;
    reader.done()?;
    if count > ENTRIES_MAX {
        let what = format!("it has {count} sample entries; at most {ENTRIES_MAX} are read");
        return Err(Error::new(Kind::TooLarge, what));
    }
    let inside = Children::new(reader.rest(), stsd.body_at() + 8);
    inside.take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{write_box, write_full_box};

    fn stsd(count: u32) -> Vec<u8> {
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
        let bytes = stsd(2);
        let found = parse(&Mp4Box::first(&bytes, 100).unwrap()).unwrap();
        let flat: Vec<_> = found
            .iter()
            .map(|e| (e.name, e.at, e.whole.len()))
            .collect();
        assert_eq!(flat, [(*b"avc1", 116, 12), (*b"mp4a", 128, 8)]);
    }

    #[test]
    fn too_many_entries_are_refused_with_the_bound() {
        let bytes = stsd(u32::MAX);
        let error = parse(&Mp4Box::first(&bytes, 0).unwrap()).unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge);
        assert!(error.what.contains("at most 64"));
    }
}
