//! `ftyp`: file type and compatibility (4.3).

use crate::bytes::Reader;
use crate::error::Result;

/// What a file says it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ftyp {
    /// The brand it was made for.
    pub major: [u8; 4],
}

impl Ftyp {
    /// Reads the body of the box. Compatible brands are not looked at.
    ///
    /// # Errors
    /// `Truncated` if it is too short.
    pub fn parse(body: &[u8]) -> Result<Ftyp> {
        let mut reader = Reader::new(body);
        let major = reader.array();
        reader.done()?;
        Ok(Ftyp { major })
    }

    /// Whether it is a QuickTime file, where some boxes differ.
    pub fn is_quicktime(&self) -> bool {
        self.major == *b"qt  "
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brands() {
        let quick = Ftyp::parse(b"qt  \0\0\x02\0qt  ").unwrap();
        assert!(quick.is_quicktime());
        assert!(!Ftyp::parse(b"isom\0\0\x02\0qt  ").unwrap().is_quicktime());
        assert!(Ftyp::parse(b"qt").is_err());
    }
}
