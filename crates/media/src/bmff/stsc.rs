//! `stsc`: number of samples in each chunk (8.7.4).

use super::read_version_and_flags;
use super::table::{entry_u32, read_entries};
use crate::bytes::ByteReader;
use crate::error::Result;

/// A run of consecutive chunks with the same number of samples. The run ends before the first chunk
/// of the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRun {
    /// Number of the first chunk, counted from 1.
    pub first_chunk: u32,
    /// Number of samples in each chunk.
    pub samples_per_chunk: u32,
    /// `sample_description_index`, the number of the sample entry, counted from 1.
    pub description_index: u32,
}

/// Parses the body into runs of chunks.
///
/// # Errors
/// Returns `Truncated` if there are fewer runs than declared.
pub fn parse_stsc(body: &[u8]) -> Result<impl Iterator<Item = ChunkRun> + Clone + '_> {
    let mut reader = ByteReader::new(body);
    read_version_and_flags(&mut reader);
    let count = reader.u32();
    let runs = read_entries::<12>(&mut reader, count)?;
    Ok(runs.iter().map(|run| ChunkRun {
        first_chunk: entry_u32(run, 0),
        samples_per_chunk: entry_u32(run, 4),
        description_index: entry_u32(run, 8),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_parsed() {
        let body = b"\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x0a\0\0\0\x02";
        let runs: Vec<_> = parse_stsc(body).unwrap().collect();
        let expected = ChunkRun {
            first_chunk: 1,
            samples_per_chunk: 10,
            description_index: 2,
        };
        assert_eq!(runs, [expected]);
        assert!(parse_stsc(&body[..19]).is_err());
    }
}
