//! `stts`: decoding times, stored as runs of equal sample durations (8.6.1.2).

use super::read_version_and_flags;
use super::table::{entry_u32, read_entries};
use crate::bytes::ByteReader;
use crate::error::Result;

/// Parses the body into runs of (number of samples, ticks per sample).
///
/// # Errors
/// Returns `Truncated` if there are fewer runs than declared.
pub fn parse_stts(body: &[u8]) -> Result<impl Iterator<Item = (u32, u32)> + Clone + '_> {
    let mut reader = ByteReader::new(body);
    read_version_and_flags(&mut reader);
    let count = reader.u32();
    let runs = read_entries::<8>(&mut reader, count)?;
    Ok(runs
        .iter()
        .map(|run| (entry_u32(run, 0), entry_u32(run, 4))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_parsed() {
        let body = b"\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\x02\0\0\0\0\x01\0\0\0\x07";
        let runs: Vec<_> = parse_stts(body).unwrap().collect();
        assert_eq!(runs, [(5, 512), (1, 7)]);
        assert!(parse_stts(&body[..23]).is_err());
    }
}
