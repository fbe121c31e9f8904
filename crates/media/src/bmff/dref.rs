//! `dref`: where a track's media lies (8.7.2).

use super::{Children, Mp4Box, version_and_flags};
use crate::bytes::Reader;
use crate::error::Result;

/// Whether the entry numbered `index`, from 1, says that the media lies in this very file.
/// An entry that is missing is taken to say so.
///
/// # Errors
/// What is wrong with an entry's size.
pub fn is_self_contained(dref: &Mp4Box<'_>, index: u16) -> Result<bool> {
    let mut reader = Reader::new(dref.body);
    version_and_flags(&mut reader);
    reader.u32();
    reader.done()?;
    let wanted = usize::from(index.max(1)) - 1;
    let Some(entry) = Children::new(reader.rest(), dref.body_at() + 8).nth(wanted) else {
        return Ok(true);
    };
    let mut reader = Reader::new(entry?.body);
    let (_, flags) = version_and_flags(&mut reader);
    Ok(reader.done().is_err() || flags & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_full_box;

    #[test]
    fn self_contained_or_elsewhere() {
        let mut bytes = Vec::new();
        write_full_box(&mut bytes, b"dref", 0, 0, |out| {
            out.extend(2u32.to_be_bytes());
            write_full_box(out, b"url ", 0, 1, |_| ());
            write_full_box(out, b"url ", 0, 0, |out| out.extend(b"http://a/b.mp4\0"));
        });
        let dref = Mp4Box::first(&bytes, 0).unwrap();
        assert_eq!(is_self_contained(&dref, 1), Ok(true));
        assert_eq!(is_self_contained(&dref, 2), Ok(false));
        assert_eq!(is_self_contained(&dref, 3), Ok(true));
    }
}
