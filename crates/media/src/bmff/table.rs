//! Tables of fixed-size entries, read in place.

use crate::bytes::Reader;
use crate::error::{Error, Kind, Result};

/// Takes `count` entries of `N` bytes from `reader`, checked against what is there before
/// anything is allocated.
pub(super) fn entries<'a, const N: usize>(
    reader: &mut Reader<'a>,
    count: u32,
) -> Result<&'a [[u8; N]]> {
    reader.done()?;
    let (all, _) = reader.rest().as_chunks::<N>();
    let found = all.get(..count as usize).ok_or_else(|| {
        let room = all.len();
        let what = format!("it claims {count} entries, but has room for {room}");
        Error::new(Kind::Truncated, what)
    })?;
    reader.skip(count as usize * N);
    Ok(found)
}

/// A big-endian word of an entry.
pub(super) fn word<const N: usize>(entry: &[u8; N], at: usize) -> u32 {
    let word = entry.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_be_bytes(word.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_entries_than_bytes_is_an_error_before_any_allocation() {
        let mut reader = Reader::new(&[0, 0, 0, 1, 0, 0, 0, 2, 9]);
        let error = entries::<4>(&mut reader, u32::MAX).unwrap_err();
        assert!(error.what.contains("4294967295") && error.what.contains("room for 2"));
        let two = entries::<4>(&mut reader, 2).unwrap();
        assert_eq!((word(&two[0], 0), word(&two[1], 0)), (1, 2));
        assert_eq!(reader.rest(), [9]);
    }
}
