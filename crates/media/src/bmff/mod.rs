//! ISO base media file format (ISO/IEC 14496-12). Each box type has its own file.
//!
//! Parsers read from slices. For large tables, parsers return slices or iterators over the bytes of
//! the box, and copy nothing. Callers look up boxes by path.

pub mod ctts;
pub mod dref;
pub mod elng;
pub mod elst;
pub mod ftyp;
pub mod hdlr;
mod header;
pub mod kind_box;
pub mod mdhd;
pub mod mvhd;
pub mod sidx;
pub mod stco;
pub mod stsc;
pub mod stsd;
pub mod stss;
pub mod stsz;
pub mod stts;
mod table;
pub mod tfdt;
pub mod tfhd;
pub mod tkhd;
pub mod trex;
pub mod trun;
pub mod udta;

pub use header::BoxHeader;

use crate::bytes::ByteReader;
use crate::error::{Error, ErrorKind, Result, format_fourcc};

/// One box in memory, with its offset in the file.
#[derive(Debug, Clone, Copy)]
pub struct Mp4Box<'a> {
    /// Four-letter code.
    pub name: [u8; 4],
    /// Content after the header.
    pub body: &'a [u8],
    /// The whole box, including the header.
    pub bytes: &'a [u8],
    /// Offset of the header in the file, in bytes.
    pub offset: u64,
}

impl<'a> Mp4Box<'a> {
    /// Parses the box at the start of `bytes`. `at` is the offset of `bytes` in the file.
    ///
    /// # Errors
    /// Returns `Truncated` if the box is longer than `bytes`. Returns `Malformed` if the declared
    /// size is smaller than the header.
    pub fn parse_first(bytes: &'a [u8], at: u64) -> Result<Mp4Box<'a>> {
        let left = bytes.len() as u64;
        let header = BoxHeader::parse(bytes, left)
            .map_err(|error| error.with_byte_offset(at))?
            .ok_or_else(|| {
                Error::new(ErrorKind::Truncated, "a box header is truncated").with_byte_offset(at)
            })?;
        let whole = usize::try_from(header.box_size)
            .ok()
            .and_then(|size| bytes.get(..size))
            .ok_or_else(|| header.overrun_error(left).with_byte_offset(at))?;
        Ok(Mp4Box {
            name: header.name,
            body: whole.get(header.header_len as usize..).unwrap_or_default(),
            bytes: whole,
            offset: at,
        })
    }

    /// Offset of the body in the file, in bytes.
    pub fn body_offset(&self) -> u64 {
        self.offset + (self.bytes.len() - self.body.len()) as u64
    }

    /// Iterates over the child boxes in order.
    pub fn children(&self) -> BoxIterator<'a> {
        BoxIterator::new(self.body, self.body_offset())
    }

    /// Returns the first child called `name`.
    ///
    /// # Errors
    /// Returns an error if a box before that child is invalid.
    pub fn find_child(&self, name: &[u8; 4]) -> Result<Option<Mp4Box<'a>>> {
        for child in self.children() {
            let child = child.map_err(|error| error.with_enclosing_box(self.name))?;
            if child.name == *name {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// Returns the first child called `name`, which the standard requires.
    ///
    /// # Errors
    /// Returns `Malformed` if the child is missing. Returns an error if a box before the child is
    /// invalid.
    pub fn require_child(&self, name: &[u8; 4]) -> Result<Mp4Box<'a>> {
        let missing = || Error::malformed(format!("there is no {} box", format_fourcc(*name)));
        let found = self.find_child(name)?;
        found.ok_or_else(|| {
            missing()
                .with_enclosing_box(self.name)
                .with_byte_offset(self.offset)
        })
    }

    /// Parses the body with `parse`. If `parse` fails, adds this box to the location of the error.
    ///
    /// # Errors
    /// Returns the error of `parse`.
    pub fn parse_body<T>(&self, parse: impl FnOnce(&'a [u8]) -> Result<T>) -> Result<T> {
        parse(self.body).map_err(|error| {
            error
                .with_enclosing_box(self.name)
                .with_byte_offset(self.offset)
        })
    }
}

/// Iterates over the boxes of a slice in order, and stops after the first error.
#[derive(Debug, Clone)]
pub struct BoxIterator<'a> {
    remaining: &'a [u8],
    offset: u64,
}

impl<'a> BoxIterator<'a> {
    /// Creates an iterator over the boxes in `bytes`. `at` is the offset of `bytes` in the file.
    pub fn new(bytes: &'a [u8], at: u64) -> BoxIterator<'a> {
        BoxIterator {
            remaining: bytes,
            offset: at,
        }
    }
}

impl<'a> Iterator for BoxIterator<'a> {
    type Item = Result<Mp4Box<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        // Some QuickTime containers end with four zero bytes.
        if self.remaining.len() < 8 && self.remaining.iter().all(|byte| *byte == 0) {
            return None;
        }
        let found = Mp4Box::parse_first(self.remaining, self.offset);
        match &found {
            Ok(child) => {
                self.remaining = self.remaining.get(child.bytes.len()..).unwrap_or_default();
                self.offset += child.bytes.len() as u64;
            }
            Err(_) => self.remaining = &[],
        }
        Some(found)
    }
}

/// Reads the version and the flags, which are the first fields of every full box (4.2.2).
pub fn read_version_and_flags(reader: &mut ByteReader<'_>) -> (u8, u32) {
    (reader.u8(), reader.u24())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn nest_boxes(names: &[&[u8; 4]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names.iter().rev() {
            let inner = std::mem::take(&mut bytes);
            write_box(&mut bytes, name, |out| out.extend_from_slice(&inner));
        }
        bytes
    }

    #[test]
    fn children_report_their_offsets() {
        let mut body = nest_boxes(&[b"free"]);
        body.extend(nest_boxes(&[b"trak", b"tkhd"]));
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"moov", |out| out.extend_from_slice(&body));
        let moov = Mp4Box::parse_first(&bytes, 100).unwrap();
        let trak = moov.require_child(b"trak").unwrap();
        assert_eq!(
            (trak.offset, trak.body_offset(), trak.body.len()),
            (116, 124, 8)
        );
        assert_eq!(trak.require_child(b"tkhd").unwrap().offset, 124);
        let error = moov.require_child(b"mvhd").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no mvhd box (in moov, at byte 100)"
        );
    }

    #[test]
    fn an_overlong_inner_box_is_named_with_its_offset() {
        let mut bytes = nest_boxes(&[b"moov", b"trak"]);
        bytes[11] = 200;
        let moov = Mp4Box::parse_first(&bytes, 0).unwrap();
        let error = moov.require_child(b"tkhd").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Truncated);
        assert_eq!(error.byte_offset, Some(8));
        assert!(error.message.contains("trak"), "{error}");
    }

    #[test]
    fn zeros_may_end_a_quicktime_container() {
        let mut bytes = nest_boxes(&[b"free"]);
        bytes.extend_from_slice(&[0; 4]);
        assert_eq!(BoxIterator::new(&bytes, 0).filter(Result::is_ok).count(), 1);
        bytes.push(1);
        assert!(BoxIterator::new(&bytes, 0).any(|child| child.is_err()));
    }
}
