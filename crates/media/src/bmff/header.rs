//! The header of a box (4.2.2): 32-bit, 64-bit and to-the-end sizes.

use crate::bytes::Reader;
use crate::error::{Error, Kind, Result, fourcc};

/// Name and size of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Four-letter code.
    pub name: [u8; 4],
    /// Bytes of the header itself: 8, or 16 where the size has 64 bits.
    pub len: u64,
    /// Bytes of the whole box, header included.
    pub size: u64,
}

impl Header {
    /// Reads the header that `bytes` begin with, in a container (or file) that ends `left` bytes
    /// after its start. `None`: more bytes are needed to tell.
    ///
    /// # Errors
    /// `Malformed` if the size is smaller than the header.
    pub fn read(bytes: &[u8], left: u64) -> Result<Option<Header>> {
        let mut reader = Reader::new(bytes);
        let (short, name) = (reader.u32(), reader.array());
        let (len, size) = match short {
            0 => (8, left),
            1 => (16, reader.u64()),
            size => (8, u64::from(size)),
        };
        if reader.done().is_err() {
            return Ok(None);
        }
        if size < len {
            let name = fourcc(name);
            let what = format!("box {name} says it is {size} bytes, less than its own header");
            return Err(Error::malformed(what));
        }
        Ok(Some(Header { name, len, size }))
    }

    /// The error for a box that is longer than the `left` bytes there are.
    pub fn overrun(&self, left: u64) -> Error {
        let (name, size) = (fourcc(self.name), self.size);
        let what = format!("box {name} says it is {size} bytes, but only {left} are left");
        Error::new(Kind::Truncated, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_size() {
        let read = |bytes: &[u8]| Header::read(bytes, 1000);
        let some = |name: &[u8; 4], len, size| {
            let name = *name;
            Ok(Some(Header { name, len, size }))
        };
        assert_eq!(read(b"\0\0\0\x08free"), some(b"free", 8, 8));
        assert_eq!(read(b"\0\0\0\0mdat"), some(b"mdat", 8, 1000));
        let wide = b"\0\0\0\x01mdat\0\0\0\x02\0\0\0\0";
        assert_eq!(read(wide), some(b"mdat", 16, 1 << 33));
        assert_eq!(read(&wide[..12]), Ok(None));
        assert_eq!(read(b"\0\0\0"), Ok(None));
        assert!(read(b"\0\0\0\x07free").is_err());
        assert!(read(b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x0f").is_err());
    }
}
