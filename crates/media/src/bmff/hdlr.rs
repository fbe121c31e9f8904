//! `hdlr`: what kind of track this is (8.4.3), in ISO and QuickTime form.

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Kind and name of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hdlr {
    /// `vide`, `soun`, `text`, ...
    pub kind: [u8; 4],
    /// Name given to the handler, without padding.
    pub name: String,
}

impl Hdlr {
    /// Reads the body of the box.
    ///
    /// # Errors
    /// `Truncated` if it is too short.
    pub fn parse(body: &[u8]) -> Result<Hdlr> {
        let mut reader = Reader::new(body);
        version_and_flags(&mut reader);
        let component_type: [u8; 4] = reader.array();
        let kind = reader.array();
        reader.done()?;
        reader.skip(12);
        let name = reader.rest();
        let name = match name.split_first() {
            // QuickTime counts the letters first.
            Some((len, rest)) if component_type != [0; 4] && usize::from(*len) <= rest.len() => {
                rest.get(..usize::from(*len)).unwrap_or_default()
            }
            _ => name,
        };
        Ok(Hdlr {
            kind,
            name: text(name),
        })
    }
}

/// Text up to its first NUL, without spaces around.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_and_quicktime_names() {
        let iso = b"\0\0\0\0\0\0\0\0vide\0\0\0\0\0\0\0\0\0\0\0\0Director's cut\0";
        let parsed = Hdlr::parse(iso).unwrap();
        assert_eq!((parsed.kind, &*parsed.name), (*b"vide", "Director's cut"));
        let quick = b"\0\0\0\0mhlrsounappl\0\0\0\0\0\0\0\0\x05Audio and more";
        let parsed = Hdlr::parse(quick).unwrap();
        assert_eq!((parsed.kind, &*parsed.name), (*b"soun", "Audio"));
        let bare = Hdlr::parse(&iso[..12]).unwrap();
        assert_eq!(bare.name, "");
        assert!(Hdlr::parse(&iso[..11]).is_err());
    }
}
