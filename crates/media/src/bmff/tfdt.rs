//! `tfdt`: decode time of a track fragment's first sample (8.8.12).

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Reads the body of the box: ticks of the track.
///
/// # Errors
/// `Truncated` if it is too short.
pub fn parse(body: &[u8]) -> Result<u64> {
    let mut reader = Reader::new(body);
    let time = match version_and_flags(&mut reader).0 {
        0 => u64::from(reader.u32()),
        _ => reader.u64(),
    };
    reader.done()?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        assert_eq!(parse(b"\0\0\0\0\xff\0\0\0"), Ok(0xff00_0000));
        assert_eq!(parse(b"\x01\0\0\0\0\0\0\x01\0\0\0\0"), Ok(1 << 32));
        assert!(parse(b"\x01\0\0\0\0\0\0\x01").is_err());
    }
}
