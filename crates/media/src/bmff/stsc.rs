//! `stsc`: how many samples each chunk holds (8.7.4).

use super::table::{entries, word};
use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// Chunks from one on, until the next run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first chunk, from 1.
    pub first_chunk: u32,
    /// Samples in each.
    pub samples: u32,
    /// Which sample entry they use, from 1.
    pub description: u32,
}

/// Reads the body of the box.
///
/// # Errors
/// `Truncated` if there are fewer runs than it claims.
pub fn parse(body: &[u8]) -> Result<impl Iterator<Item = Run> + Clone + '_> {
    let mut reader = Reader::new(body);
    version_and_flags(&mut reader);
    let count = reader.u32();
    let runs = entries::<12>(&mut reader, count)?;
    Ok(runs.iter().map(|run| Run {
        first_chunk: word(run, 0),
        samples: word(run, 4),
        description: word(run, 8),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        let body = b"\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x0a\0\0\0\x02";
        let runs: Vec<_> = parse(body).unwrap().collect();
        let expected = Run {
            first_chunk: 1,
            samples: 10,
            description: 2,
        };
        assert_eq!(runs, [expected]);
        assert!(parse(&body[..19]).is_err());
    }
}
