//! A slice reader whose first error sticks, and helpers to write big-endian boxes.

use crate::error::{Error, Kind, Result};

/// Reads big-endian values from a slice. After the first read past the end every read gives
/// zero, and [`Reader::done`] says so; so parsing code stays straight.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    short: bool,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            rest: bytes,
            short: false,
        }
    }

    /// The next `n` bytes, or an empty slice if there are fewer.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                head
            }
            None => {
                self.short = true;
                self.rest = &[];
                &[]
            }
        }
    }

    /// The next `N` bytes, or zeros.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap_or([0; N])
    }

    /// Passes over `n` bytes.
    pub fn skip(&mut self, n: usize) {
        self.take(n);
    }

    /// One byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    /// Three bytes.
    pub fn u24(&mut self) -> u32 {
        let [a, b, c] = self.array();
        u32::from_be_bytes([0, a, b, c])
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    /// Four bytes, signed.
    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.array())
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if any read went past the end.
    pub fn done(&self) -> Result<()> {
        if self.short {
            return Err(Error::new(
                Kind::Truncated,
                "the box is shorter than its fields",
            ));
        }
        Ok(())
    }
}

/// Appends one box to `out`: size, `name`, and what `body` writes.
///
/// The size field is patched afterwards; a box of 4 GiB or more cannot be written this way.
pub fn write_box(out: &mut Vec<u8>, name: &[u8; 4], body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name);
    body(out);
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Appends one full box (ISO/IEC 14496-12, 4.2.2): a box that opens with version and flags.
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
    fn the_first_short_read_sticks() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u16(), 0x0102);
        assert_eq!(reader.u32(), 0);
        assert_eq!(reader.u8(), 0);
        assert!(reader.done().is_err());
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
