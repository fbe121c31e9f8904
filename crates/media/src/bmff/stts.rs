//! `stts`: decoding times as runs of equal durations (8.6.1.2).

use super::table::{entries, word};
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Reads the body of the box: runs of (samples, ticks each).
///
/// # Errors
/// `Truncated` if there are fewer runs than it claims.
pub fn parse(body: &[u8]) -> Result<impl Iterator<Item = (u32, u32)> + Clone + '_> {
    let mut reader = Reader::new(body);
    version_and_flags(&mut reader);
    let count = reader.u32();
    let runs = entries::<8>(&mut reader, count)?;
    Ok(runs.iter().map(|run| (word(run, 0), word(run, 4))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        let body = b"\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\x02\0\0\0\0\x01\0\0\0\x07";
        let runs: Vec<_> = parse(body).unwrap().collect();
        assert_eq!(runs, [(5, 512), (1, 7)]);
        assert!(parse(&body[..23]).is_err());
    }
}
