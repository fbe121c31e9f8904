//! `stss`: sync samples (8.6.2).

use super::read_version_and_flags;
use super::table::read_entries;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Parses the body into the numbers of the sync samples, counted from 1.
///
/// # Errors
/// Returns `Truncated` if there are fewer numbers than declared.
pub fn parse_stss(body: &[u8]) -> Result<impl Iterator<Item = u32> + Clone + '_> {
    let mut reader = ByteReader::new(body);
    read_version_and_flags(&mut reader);
    let count = reader.u32();
    let numbers = read_entries::<4>(&mut reader, count)?;
    Ok(numbers.iter().map(|number| u32::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_numbers_are_parsed() {
        let body = b"\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\x31";
        assert_eq!(parse_stss(body).unwrap().collect::<Vec<_>>(), [1, 49]);
        assert!(parse_stss(&body[..15]).is_err());
    }
}
