//! `tfdt`: decode time of the first sample of a track fragment (8.8.12).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Parses the body, and returns the decode time in ticks of the track.
///
/// # Errors
/// Returns `Truncated` if the body is too short.
pub fn parse_tfdt(body: &[u8]) -> Result<u64> {
    let mut reader = ByteReader::new(body);
    let time = match read_version_and_flags(&mut reader).0 {
        0 => u64::from(reader.u32()),
        _ => reader.u64(),
    };
    reader.check_no_short_read()?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        assert_eq!(parse_tfdt(b"\0\0\0\0\xff\0\0\0"), Ok(0xff00_0000));
        assert_eq!(parse_tfdt(b"\x01\0\0\0\0\0\0\x01\0\0\0\0"), Ok(1 << 32));
        assert!(parse_tfdt(b"\x01\0\0\0\0\0\0\x01").is_err());
    }
}
