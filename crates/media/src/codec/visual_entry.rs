//! Visual sample entries (ISO/IEC 14496-12, 12.1; QuickTime File Format, "Video Sample
//! Description"): their fixed fields, and how we write them.

use super::entry::Children;
use crate::bytes::{Reader, write_box};
use crate::error::Result;

/// A `VisualSampleEntry`.
#[derive(Debug, Clone)]
pub struct VisualEntry<'a> {
    /// Four-letter code.
    pub code: [u8; 4],
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// From frame size to depth: what we copy as it is.
    fixed: &'a [u8],
    /// Boxes.
    pub children: Children<'a>,
}

impl<'a> VisualEntry<'a> {
    /// Reads the body of the entry `code`.
    pub fn read(code: [u8; 4], body: &'a [u8]) -> Result<VisualEntry<'a>> {
        let mut reader = Reader::new(body);
        reader.skip(24); // reserved, data_reference_index, QuickTime's version and vendor
        let fixed = reader.take(54);
        reader.done()?;
        let mut size = Reader::new(fixed);
        Ok(VisualEntry {
            code,
            width: u32::from(size.u16()),
            height: u32::from(size.u16()),
            fixed,
            children: Children::read(reader.rest())?,
        })
    }

    /// The entry in ISO form: data_reference_index 1, QuickTime's fields zero, its `nclc` as
    /// `nclx`, its `gama` and list terminator gone; everything else as it was.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_box(&mut out, &self.code, |out| {
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&[0; 16]);
            out.extend_from_slice(self.fixed);
            for child in &self.children.0 {
                match (&child.name, child.body) {
                    (b"gama", _) => {}
                    (b"colr", [b'n', b'c', b'l', b'c', rest @ ..]) => {
                        write_box(out, b"colr", |out| {
                            out.extend_from_slice(b"nclx");
                            out.extend_from_slice(rest.get(..6).unwrap_or(rest));
                            out.push(0); // full_range_flag: QuickTime's colours are of video range
                        })
                    }
                    _ => Children(vec![*child]).write(out),
                }
            }
        });
        out
    }
}
