//! `ctts`: composition offsets (8.6.1.3).

use super::read_version_and_flags;
use super::table::{entry_u32, read_entries};
use crate::bytes::ByteReader;
use crate::error::Result;

/// Parses the body into runs of (number of samples, composition offset in ticks).
///
/// Offsets are read as signed numbers, even in version 0. QuickTime and other writers store
/// negative offsets in version 0. In practice, no unsigned offset needs the 32nd bit.
///
/// # Errors
/// Returns `Truncated` if there are fewer runs than declared.
pub fn parse_ctts(body: &[u8]) -> Result<impl Iterator<Item = (u32, i32)> + Clone + '_> {
    let mut reader = ByteReader::new(body);
    read_version_and_flags(&mut reader);
    let count = reader.u32();
    let runs = read_entries::<8>(&mut reader, count)?;
    Ok(runs
        .iter()
        .map(|run| (entry_u32(run, 0), entry_u32(run, 4) as i32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_signed_in_both_versions() {
        for version in [0, 1] {
            let mut body = *b"\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\x02\0\0\0\0\x01\xff\xff\xff\xfe";
            body[0] = version;
            let runs: Vec<_> = parse_ctts(&body).unwrap().collect();
            assert_eq!(runs, [(5, 512), (1, -2)]);
        }
    }
}
