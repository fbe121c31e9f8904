//! Visual sample entries (ISO/IEC 14496-12, 12.1; QuickTime File Format, "Video Sample
//! Description"): parsing of the fixed fields, and writing in ISO form.

use super::sample_entry::ChildBoxes;
use crate::bytes::{ByteReader, write_box};
use crate::error::Result;

/// A `VisualSampleEntry`.
#[derive(Debug, Clone)]
pub struct VisualSampleEntry<'a> {
    /// Four-letter code.
    pub code: [u8; 4],
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The fields from frame size to depth, copied verbatim.
    fixed_fields: &'a [u8],
    /// Child boxes.
    pub children: ChildBoxes<'a>,
}

impl<'a> VisualSampleEntry<'a> {
    /// Parses the body of the entry `code`.
    pub fn parse(code: [u8; 4], body: &'a [u8]) -> Result<VisualSampleEntry<'a>> {
        let mut reader = ByteReader::new(body);
        reader.skip(24); // reserved, data_reference_index, QuickTime's version and vendor
        let fixed = reader.take(54);
        reader.check_complete()?;
        let mut size = ByteReader::new(fixed);
        Ok(VisualSampleEntry {
            code,
            width: u32::from(size.u16()),
            height: u32::from(size.u16()),
            fixed_fields: fixed,
            children: ChildBoxes::parse(reader.remaining())?,
        })
    }

    /// Writes the entry in ISO form.
    ///
    /// data_reference_index becomes 1, QuickTime's fields become zero and its `nclc` becomes
    /// `nclx`. Its `gama` and list terminator are dropped. Everything else stays.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_box(&mut out, &self.code, |out| {
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&[0; 16]);
            out.extend_from_slice(self.fixed_fields);
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
                    _ => ChildBoxes(vec![*child]).write_all(out),
                }
            }
        });
        out
    }
}
