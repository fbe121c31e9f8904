//! `elng`: extended language tag (8.4.6).

use super::{hdlr::decode_nul_terminated, read_version_and_flags};
use crate::bytes::ByteReader;
use crate::error::Result;

/// Parses the body, which is a BCP 47 tag such as `pt-BR`. Returns `None` if the tag is invalid.
///
/// # Errors
/// Returns `Truncated` if the body is too short.
pub fn parse_elng(body: &[u8]) -> Result<Option<String>> {
    let mut reader = ByteReader::new(body);
    read_version_and_flags(&mut reader);
    reader.check_no_short_read()?;
    let tag = decode_nul_terminated(reader.remaining_slice());
    let legal = (2..=35).contains(&tag.len())
        && tag.split('-').all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    Ok(legal.then_some(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_tags_are_read() {
        assert_eq!(
            parse_elng(b"\0\0\0\0pt-BR\0").unwrap().as_deref(),
            Some("pt-BR")
        );
        assert_eq!(parse_elng(b"\0\0\0\0de").unwrap().as_deref(), Some("de"));
        assert_eq!(parse_elng(b"\0\0\0\0\"><script>\0"), Ok(None));
        assert_eq!(parse_elng(b"\0\0\0\0-\0"), Ok(None));
        assert!(parse_elng(b"\0\0").is_err());
    }
}
