//! `ftyp`: file type and compatibility (4.3).

use crate::bytes::ByteReader;
use crate::error::Result;

/// The file type, which names the main specification that the file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ftyp {
    /// `major_brand`.
    pub major_brand: [u8; 4],
}

impl Ftyp {
    /// Parses the body. Ignores the compatible brands.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Ftyp> {
        let mut reader = ByteReader::new(body);
        let major = reader.read_array();
        reader.check_no_short_read()?;
        Ok(Ftyp { major_brand: major })
    }

    /// Returns whether this is a QuickTime file, in which the layout of some boxes is different.
    pub fn is_quicktime(&self) -> bool {
        self.major_brand == *b"qt  "
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_brand_decides_on_quicktime() {
        let quick = Ftyp::parse(b"qt  \0\0\x02\0qt  ").unwrap();
        assert!(quick.is_quicktime());
        assert!(!Ftyp::parse(b"isom\0\0\x02\0qt  ").unwrap().is_quicktime());
        assert!(Ftyp::parse(b"qt").is_err());
    }
}
