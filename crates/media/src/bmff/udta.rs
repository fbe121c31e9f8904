//! `udta`: user data (8.10.1). This module reads only the name of a track.

use super::{Mp4Box, hdlr::decode_nul_terminated};
use crate::bytes::ByteReader;
use crate::error::Result;

/// Returns the track's name from a `name` box or from QuickTime's `©nam` box.
///
/// A `name` box contains plain text. Some writers put the version and flags of a full box before
/// the text. A `©nam` box contains a length, a language code and the text.
///
/// # Errors
/// Returns an error if the size of a child box is invalid.
pub fn find_track_name(udta: &Mp4Box<'_>) -> Result<Option<String>> {
    if let Some(found) = udta.find_child(b"name")? {
        let body = found.body.strip_prefix(&[0; 4]).unwrap_or(found.body);
        return Ok(Some(decode_nul_terminated(body)).filter(|name| !name.is_empty()));
    }
    let Some(found) = udta.find_child(b"\xa9nam")? else {
        return Ok(None);
    };
    let mut reader = ByteReader::new(found.body);
    let len = reader.u16();
    reader.u16();
    let name = decode_nul_terminated(reader.take(usize::from(len)));
    Ok(Some(name).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn read_name(kind: &[u8; 4], body: &[u8]) -> Option<String> {
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"udta", |out| {
            write_box(out, kind, |out| out.extend_from_slice(body));
        });
        find_track_name(&Mp4Box::parse_first(&bytes, 0).unwrap()).unwrap()
    }

    #[test]
    fn every_form_of_name_is_read() {
        assert_eq!(read_name(b"name", b"Director").as_deref(), Some("Director"));
        assert_eq!(
            read_name(b"name", b"\0\0\0\0Director\0").as_deref(),
            Some("Director")
        );
        assert_eq!(
            read_name(b"\xa9nam", b"\0\x03\x15\xc7Cut").as_deref(),
            Some("Cut")
        );
        assert_eq!(read_name(b"\xa9nam", b"\0\x09\x15\xc7Cut"), None);
        assert_eq!(read_name(b"name", b"\0"), None);
        assert_eq!(read_name(b"titl", b"x"), None);
    }
}
