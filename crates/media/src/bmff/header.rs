//! Box headers (4.2.2). A box size has 32 or 64 bits, or means "to the end of the file".

use crate::bytes::ByteReader;
use crate::error::{Error, ErrorKind, Result, format_fourcc};

/// Name and size of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxHeader {
    /// Four-letter code.
    pub name: [u8; 4],
    /// Size of the header in bytes, which is 8, or 16 if the box size has 64 bits.
    pub header_len: u64,
    /// Size of the whole box in bytes, including the header.
    pub box_size: u64,
}

impl BoxHeader {
    /// Parses the header at the start of `bytes`.
    ///
    /// `left` is the number of bytes from the start of the header to the end of the container or
    /// file. A box that declares a size of 0 is `left` bytes long. Returns `None` if `bytes` does
    /// not contain the whole header.
    ///
    /// # Errors
    /// Returns `Malformed` if the size is smaller than the header.
    pub fn parse(bytes: &[u8], left: u64) -> Result<Option<BoxHeader>> {
        let mut reader = ByteReader::new(bytes);
        let (short, name) = (reader.u32(), reader.read_array());
        let (len, size) = match short {
            0 => (8, left),
            1 => (16, reader.u64()),
            size => (8, u64::from(size)),
        };
        if reader.check_no_short_read().is_err() {
            return Ok(None);
        }
        if size < len {
            let name = format_fourcc(name);
            let message = format!("box {name} declares {size} bytes, less than its own header");
            return Err(Error::malformed(message));
        }
        Ok(Some(BoxHeader {
            name,
            header_len: len,
            box_size: size,
        }))
    }

    /// Creates the error for a box that is longer than the `left` bytes that remain in its
    /// container.
    pub fn overrun_error(&self, left: u64) -> Error {
        let (name, size) = (format_fourcc(self.name), self.box_size);
        let message = format!("box {name} declares {size} bytes, but only {left} are left");
        Error::new(ErrorKind::Truncated, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_size_is_parsed() {
        let read = |bytes: &[u8]| BoxHeader::parse(bytes, 1000);
        let some = |name: &[u8; 4], len, size| {
            let name = *name;
            Ok(Some(BoxHeader {
                name,
                header_len: len,
                box_size: size,
            }))
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
