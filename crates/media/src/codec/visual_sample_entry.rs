//! Parses the fixed fields of visual sample entries, and writes entries in ISO form (ISO/IEC
//! 14496-12, 12.1; QuickTime File Format, "Video Sample Description").

use super::child_boxes::ChildBoxes;
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
    /// The bytes of the fixed fields from the width on.
    fixed_fields: &'a [u8],
    /// Child boxes.
    pub children: ChildBoxes<'a>,
}

impl<'a> VisualSampleEntry<'a> {
    /// Parses the body of an entry with this four-letter code.
    pub fn parse(code: [u8; 4], body: &'a [u8]) -> Result<VisualSampleEntry<'a>> {
        let mut reader = ByteReader::new(body);
        reader.skip(24); // reserved, data_reference_index, QuickTime's version and vendor
        let fixed = reader.take(54);
        reader.check_no_short_read()?;
        let mut size = ByteReader::new(fixed);
        Ok(VisualSampleEntry {
            code,
            width: u32::from(size.u16()),
            height: u32::from(size.u16()),
            fixed_fields: fixed,
            children: ChildBoxes::parse(reader.remaining_slice())?,
        })
    }

    /// Writes the entry in ISO form.
    ///
    /// `data_reference_index` becomes 1, QuickTime's own fields become zero, and a `colr` box of
    /// type `nclc` gets the type `nclx`. QuickTime's `gama` box and list terminator are dropped.
    /// All other fields and boxes stay unchanged.
    pub fn write_iso_entry(&self) -> Vec<u8> {
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
                            out.push(0); // full_range_flag; QuickTime uses video range
                        })
                    }
                    _ => ChildBoxes(vec![*child]).write_boxes(out),
                }
            }
        });
        out
    }
}
