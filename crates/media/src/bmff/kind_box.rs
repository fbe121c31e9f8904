//! `kind`: a purpose of a track (8.10.4), in the track's user data.

use super::hdlr::decode_nul_terminated;
use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// One purpose of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindBox {
    /// URI of the scheme that defines the value, such as `urn:mpeg:dash:role:2011`.
    pub scheme: String,
    /// Value that the scheme defines; may be empty.
    pub value: String,
}

impl KindBox {
    /// Parses the body, which contains two NUL-terminated strings.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<KindBox> {
        let mut reader = ByteReader::new(body);
        read_version_and_flags(&mut reader);
        reader.check_no_short_read()?;
        let texts = reader.remaining_slice();
        let end = texts.iter().position(|byte| *byte == 0);
        let value = end.and_then(|end| texts.get(end + 1..)).unwrap_or_default();
        Ok(KindBox {
            scheme: decode_nul_terminated(texts),
            value: decode_nul_terminated(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_value_are_parsed() {
        let parse = |body: &[u8]| KindBox::parse(body).map(|kind| (kind.scheme, kind.value));
        let pair = |scheme: &str, value: &str| Ok((scheme.to_owned(), value.to_owned()));
        assert_eq!(parse(b"\0\0\0\0urn:x\0main\0"), pair("urn:x", "main"));
        assert_eq!(parse(b"\0\0\0\0urn:x\0main"), pair("urn:x", "main"));
        assert_eq!(parse(b"\0\0\0\0urn:x"), pair("urn:x", ""));
        assert_eq!(parse(b"\0\0\0\0"), pair("", ""));
        assert!(parse(b"\0\0\0").is_err());
    }
}
