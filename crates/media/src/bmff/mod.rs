//! ISO base media file format (ISO/IEC 14496-12): one box, one file, named by its four letters.
//!
//! Everything here reads from slices and copies nothing; big tables are iterators over the
//! bytes of their box. Who needs a box asks for it by its path, so nothing recurses; the one
//! walk over all boxes, [`outline`], is bounded by [`DEPTH_MAX`] and [`OUTLINE_MAX`].

pub mod ctts;
pub mod dref;
pub mod elng;
pub mod elst;
pub mod ftyp;
pub mod hdlr;
mod header;
pub mod mdhd;
pub mod mvhd;
mod outline;
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

pub use header::Header;
pub use outline::{DEPTH_MAX, Line, OUTLINE_MAX, outline};

use crate::bytes::Reader;
use crate::error::{Error, Kind, Result, fourcc};

/// One box in memory: its name, what is inside, and where that lies in the file.
#[derive(Debug, Clone, Copy)]
pub struct Mp4Box<'a> {
    /// Four-letter code.
    pub name: [u8; 4],
    /// Everything after the header.
    pub body: &'a [u8],
    /// Everything, header included.
    pub whole: &'a [u8],
    /// Offset of the header in the file.
    pub at: u64,
}

impl<'a> Mp4Box<'a> {
    /// Reads the box that `bytes` begin with; `at` is where they lie in the file.
    ///
    /// # Errors
    /// `Truncated` if the box is longer than `bytes`, `Malformed` if its size is impossible.
    pub fn first(bytes: &'a [u8], at: u64) -> Result<Mp4Box<'a>> {
        let left = bytes.len() as u64;
        let header = Header::read(bytes, left)
            .map_err(|error| error.at(at))?
            .ok_or_else(|| Error::new(Kind::Truncated, "a box header is cut short").at(at))?;
        let whole = usize::try_from(header.size)
            .ok()
            .and_then(|size| bytes.get(..size))
            .ok_or_else(|| header.overrun(left).at(at))?;
        Ok(Mp4Box {
            name: header.name,
            body: whole.get(header.len as usize..).unwrap_or_default(),
            whole,
            at,
        })
    }

    /// Offset of the body in the file.
    pub fn body_at(&self) -> u64 {
        self.at + (self.whole.len() - self.body.len()) as u64
    }

    /// The boxes inside, in order.
    pub fn children(&self) -> Children<'a> {
        Children::new(self.body, self.body_at())
    }

    /// The first box called `name` inside.
    ///
    /// # Errors
    /// If a box before it is broken.
    pub fn find(&self, name: &[u8; 4]) -> Result<Option<Mp4Box<'a>>> {
        for child in self.children() {
            let child = child.map_err(|error| error.inside(self.name))?;
            if child.name == *name {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// The first box called `name` inside, which the standard says is there.
    ///
    /// # Errors
    /// `Malformed` if there is none.
    pub fn need(&self, name: &[u8; 4]) -> Result<Mp4Box<'a>> {
        let missing = || Error::malformed(format!("there is no {} box", fourcc(*name)));
        let found = self.find(name)?;
        found.ok_or_else(|| missing().inside(self.name).at(self.at))
    }

    /// Parses the body with `parse`; an error says that it is in this box.
    ///
    /// # Errors
    /// Those of `parse`.
    pub fn read<T>(&self, parse: impl FnOnce(&'a [u8]) -> Result<T>) -> Result<T> {
        parse(self.body).map_err(|error| error.inside(self.name).at(self.at))
    }
}

/// The boxes in a slice, in order; ends at the first error.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Children<'a> {
    /// The boxes in `bytes`, which lie at `at` in the file.
    pub fn new(bytes: &'a [u8], at: u64) -> Children<'a> {
        Children { rest: bytes, at }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<Mp4Box<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        // QuickTime ends some containers with four zero bytes.
        if self.rest.len() < 8 && self.rest.iter().all(|byte| *byte == 0) {
            return None;
        }
        let found = Mp4Box::first(self.rest, self.at);
        match &found {
            Ok(child) => {
                self.rest = self.rest.get(child.whole.len()..).unwrap_or_default();
                self.at += child.whole.len() as u64;
            }
            Err(_) => self.rest = &[],
        }
        Some(found)
    }
}

/// Version and flags, which open every full box (4.2.2).
pub fn version_and_flags(reader: &mut Reader<'_>) -> (u8, u32) {
    (reader.u8(), reader.u24())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn nest(names: &[&[u8; 4]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names.iter().rev() {
            let inner = std::mem::take(&mut bytes);
            write_box(&mut bytes, name, |out| out.extend_from_slice(&inner));
        }
        bytes
    }

    #[test]
    fn children_know_where_they_lie() {
        let mut body = nest(&[b"free"]);
        body.extend(nest(&[b"trak", b"tkhd"]));
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"moov", |out| out.extend_from_slice(&body));
        let moov = Mp4Box::first(&bytes, 100).unwrap();
        let trak = moov.need(b"trak").unwrap();
        assert_eq!((trak.at, trak.body_at(), trak.body.len()), (116, 124, 8));
        assert_eq!(trak.need(b"tkhd").unwrap().at, 124);
        let error = moov.need(b"mvhd").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no mvhd box (in moov, at byte 100)"
        );
    }

    #[test]
    fn an_inner_box_that_overruns_is_named_with_its_place() {
        let mut bytes = nest(&[b"moov", b"trak"]);
        bytes[11] = 200;
        let moov = Mp4Box::first(&bytes, 0).unwrap();
        let error = moov.need(b"tkhd").unwrap_err();
        assert_eq!(error.kind, Kind::Truncated);
        assert_eq!(error.at, Some(8));
        assert!(error.what.contains("trak"), "{error}");
    }

    #[test]
    fn quicktime_may_end_a_container_with_zeros() {
        let mut bytes = nest(&[b"free"]);
        bytes.extend_from_slice(&[0; 4]);
        assert_eq!(Children::new(&bytes, 0).filter(Result::is_ok).count(), 1);
        bytes.push(1);
        assert!(Children::new(&bytes, 0).any(|child| child.is_err()));
    }
}
