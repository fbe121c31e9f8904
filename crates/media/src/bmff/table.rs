//! Tables of fixed-size entries, which are read without copying.

use crate::bytes::ByteReader;
use crate::error::{Error, ErrorKind, Result};

/// Returns the next `count` entries of `N` bytes from `reader`. Compares `count` with the available
/// bytes, so that a wrong count cannot cause a large allocation.
pub(super) fn read_entries<'a, const N: usize>(
    reader: &mut ByteReader<'a>,
    count: u32,
) -> Result<&'a [[u8; N]]> {
    reader.check_no_short_read()?;
    let (all, _) = reader.remaining_slice().as_chunks::<N>();
    let found = all.get(..count as usize).ok_or_else(|| {
        let room = all.len();
        let message = format!("{count} entries are declared, but there is room for {room}");
        Error::new(ErrorKind::Truncated, message)
    })?;
    reader.skip(count as usize * N);
    Ok(found)
}

/// Returns the big-endian 32-bit word at byte `at` of an entry.
pub(super) fn entry_u32<const N: usize>(entry: &[u8; N], at: usize) -> u32 {
    let word = entry.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_be_bytes(word.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_entries_than_bytes_is_an_error_before_any_allocation() {
        let mut reader = ByteReader::new(&[0, 0, 0, 1, 0, 0, 0, 2, 9]);
        let error = read_entries::<4>(&mut reader, u32::MAX).unwrap_err();
        assert!(error.message.contains("4294967295") && error.message.contains("room for 2"));
        let two = read_entries::<4>(&mut reader, 2).unwrap();
        assert_eq!((entry_u32(&two[0], 0), entry_u32(&two[1], 0)), (1, 2));
        assert_eq!(reader.remaining_slice(), [9]);
    }
}
