//! `hdlr`: handler type of a track (8.4.3), in ISO and QuickTime form.

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Handler type and name of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hdlr {
    /// `handler_type`, such as `vide`, `soun` or `text`.
    pub handler_type: [u8; 4],
    /// Name of the handler, without terminator and surrounding white space.
    pub name: String,
}

impl Hdlr {
    /// Parses the body.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Hdlr> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        let component_type: [u8; 4] = reader.read_array();
        let kind = reader.read_array();
        reader.check_no_short_read()?;
        reader.skip(12);
        let name = reader.remaining_slice();
        let name = match name.split_first() {
            // QuickTime stores one byte with the length of the name before the name.
            Some((len, rest)) if component_type != [0; 4] && usize::from(*len) <= rest.len() => {
                rest.get(..usize::from(*len)).unwrap_or_default()
            }
            _ => name,
        };
        Ok(Hdlr {
            handler_type: kind,
            name: decode_nul_terminated(name),
        })
    }
}

/// Decodes the text before the first NUL, and trims white space.
pub(super) fn decode_nul_terminated(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_and_quicktime_names_are_decoded() {
        let iso = b"\0\0\0\0\0\0\0\0vide\0\0\0\0\0\0\0\0\0\0\0\0Director's cut\0";
        let parsed = Hdlr::parse(iso).unwrap();
        assert_eq!(
            (parsed.handler_type, &*parsed.name),
            (*b"vide", "Director's cut")
        );
        let quick = b"\0\0\0\0mhlrsounappl\0\0\0\0\0\0\0\0\x05Audio and more";
        let parsed = Hdlr::parse(quick).unwrap();
        assert_eq!((parsed.handler_type, &*parsed.name), (*b"soun", "Audio"));
        let bare = Hdlr::parse(&iso[..12]).unwrap();
        assert_eq!(bare.name, "");
        assert!(Hdlr::parse(&iso[..11]).is_err());
    }
}
