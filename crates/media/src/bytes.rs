//! A big-endian reader that remembers a read past the end, and functions that write boxes.

use crate::error::{Error, ErrorKind, Result};

/// Reads big-endian values from a slice.
///
/// After the first read past the end, every read returns zero and [`ByteReader::check_no_short_read`]
/// fails. Parsers therefore need only one check, after the last field.
#[derive(Debug, Clone)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
    is_truncated: bool,
}

impl<'a> ByteReader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader {
            rest: bytes,
            is_truncated: false,
        }
    }

    /// Reads `n` bytes. If fewer bytes remain, returns an empty slice.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                head
            }
            None => {
                self.is_truncated = true;
                self.rest = &[];
                &[]
            }
        }
    }

    /// Reads `N` bytes. If fewer bytes remain, returns zeros.
    pub fn read_array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap_or([0; N])
    }

    /// Skips `n` bytes.
    pub fn skip(&mut self, n: usize) {
        self.take(n);
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> u8 {
        self.read_array::<1>()[0]
    }

    /// Reads two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.read_array())
    }

    /// Reads three bytes.
    pub fn u24(&mut self) -> u32 {
        let [a, b, c] = self.read_array();
        u32::from_be_bytes([0, a, b, c])
    }

    /// Reads four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.read_array())
    }

    /// Reads four bytes as a signed number.
    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.read_array())
    }

    /// Reads eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.read_array())
    }

    /// Returns the unread bytes.
    pub fn remaining_slice(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that no read went past the end.
    ///
    /// # Errors
    /// Returns `Truncated` if a read went past the end.
    pub fn check_no_short_read(&self) -> Result<()> {
        if self.is_truncated {
            return Err(Error::new(
                ErrorKind::Truncated,
                "the box is shorter than its fields",
            ));
        }
        Ok(())
    }
}

/// Appends one box to `out`, with its size, its `name` and the content that `body` writes.
///
/// The box must be smaller than 4 GiB, because the size field has 32 bits.
pub fn write_box(out: &mut Vec<u8>, name: &[u8; 4], body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name);
    body(out);
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Appends one full box, which is a box with version and flags before its content (ISO/IEC
/// 14496-12, 4.2.2).
pub fn write_full_box(
    out: &mut Vec<u8>,
    name: &[u8; 4],
    version: u8,
    flags: u32,
    body: impl FnOnce(&mut Vec<u8>),
) {
    write_box(out, name, |out| {
        out.extend_from_slice(&(((version as u32) << 24) | (flags & 0x00ff_ffff)).to_be_bytes());
        body(out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_short_read_is_reported_at_the_end() {
        let mut reader = ByteReader::new(&[1, 2, 3]);
        assert_eq!(reader.u16(), 0x0102);
        assert_eq!(reader.u32(), 0);
        assert_eq!(reader.u8(), 0);
        assert!(reader.check_no_short_read().is_err());
    }

    #[test]
    fn boxes_nest_and_know_their_size() {
        let mut out = Vec::new();
        write_box(&mut out, b"moof", |out| {
            write_full_box(out, b"mfhd", 0, 0, |out| {
                out.extend_from_slice(&1u32.to_be_bytes())
            });
        });
        assert_eq!(out.len(), 24);
        assert_eq!(&out[..12], b"\0\0\0\x18moof\0\0\0\x10");
    }
}
