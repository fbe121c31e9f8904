//! `udta`: user data (8.10.1); of it, the name of a track.

use super::{Mp4Box, hdlr::text};
use crate::bytes::Reader;
use crate::error::Result;

/// The track's name: a `name` box (plain text, some writers open it with version and flags), or
/// QuickTime's `©nam` (length, language, text).
///
/// # Errors
/// What is wrong with the size of a box inside.
pub fn name(udta: &Mp4Box<'_>) -> Result<Option<String>> {
    if let Some(found) = udta.find(b"name")? {
        let body = found.body.strip_prefix(&[0; 4]).unwrap_or(found.body);
        return Ok(Some(text(body)).filter(|name| !name.is_empty()));
    }
    let Some(found) = udta.find(b"\xa9nam")? else {
        return Ok(None);
    };
    let mut reader = Reader::new(found.body);
    let len = reader.u16();
    reader.u16();
    let name = text(reader.take(usize::from(len)));
    Ok(Some(name).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn named(kind: &[u8; 4], body: &[u8]) -> Option<String> {
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"udta", |out| {
            write_box(out, kind, |out| out.extend_from_slice(body));
        });
        name(&Mp4Box::first(&bytes, 0).unwrap()).unwrap()
    }

    #[test]
    fn every_form_of_name() {
        assert_eq!(named(b"name", b"Director").as_deref(), Some("Director"));
        assert_eq!(
            named(b"name", b"\0\0\0\0Director\0").as_deref(),
            Some("Director")
        );
        assert_eq!(
            named(b"\xa9nam", b"\0\x03\x15\xc7Cut").as_deref(),
            Some("Cut")
        );
        assert_eq!(named(b"\xa9nam", b"\0\x09\x15\xc7Cut"), None);
        assert_eq!(named(b"name", b"\0"), None);
        assert_eq!(named(b"titl", b"x"), None);
    }
}
