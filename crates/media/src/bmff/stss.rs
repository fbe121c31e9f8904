//! `stss`: sync samples (8.6.2).

use super::table::entries;
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Reads the body of the box: numbers of the sync samples, from 1.
///
/// # Errors
/// `Truncated` if there are fewer than it claims.
pub fn parse(body: &[u8]) -> Result<impl Iterator<Item = u32> + Clone + '_> {
    let mut reader = Reader::new(body);
    version_and_flags(&mut reader);
    let count = reader.u32();
    let numbers = entries::<4>(&mut reader, count)?;
    Ok(numbers.iter().map(|number| u32::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let body = b"\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\x31";
        assert_eq!(parse(body).unwrap().collect::<Vec<_>>(), [1, 49]);
        assert!(parse(&body[..15]).is_err());
    }
}
