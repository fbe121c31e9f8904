//! A flat list of all boxes in a slice, for reports and golden tests.

use super::BoxIterator;
use crate::error::{Error, ErrorKind, Result};

/// Maximum nesting depth of boxes. Real files have a depth below 12.
pub const BOX_DEPTH_MAX: usize = 16;

/// Maximum number of boxes in an outline.
pub const OUTLINE_BOXES_MAX: usize = 100_000;

/// One box of an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Number of enclosing boxes.
    pub depth: usize,
    /// Four-letter code.
    pub name: [u8; 4],
    /// Offset of the header in the file, in bytes.
    pub offset: u64,
    /// Size of the whole box in bytes, including the header.
    pub size: u64,
}

/// Names of boxes that contain only other boxes.
const CONTAINERS: [&[u8; 4]; 14] = [
    b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl", b"mvex", b"moof", b"traf",
    b"mfra", b"tref", b"udta", b"sinf",
];

/// Lists all boxes in `bytes`, each before its child boxes. `at` is the offset of `bytes` in the
/// file.
///
/// # Errors
/// Returns `TooLarge` if [`BOX_DEPTH_MAX`] or [`OUTLINE_BOXES_MAX`] is exceeded. Returns an error
/// if a box size is invalid.
pub fn list_boxes(bytes: &[u8], at: u64) -> Result<Vec<OutlineEntry>> {
    let mut lines = Vec::new();
    append_outline_entries(bytes, at, 0, &mut lines)?;
    Ok(lines)
}

fn append_outline_entries(
    bytes: &[u8],
    at: u64,
    depth: usize,
    lines: &mut Vec<OutlineEntry>,
) -> Result<()> {
    for child in BoxIterator::new(bytes, at) {
        let child = child?;
        if depth >= BOX_DEPTH_MAX {
            let message = format!("boxes are nested more than {BOX_DEPTH_MAX} deep");
            return Err(Error::new(ErrorKind::TooLarge, message).with_byte_offset(child.offset));
        }
        if lines.len() >= OUTLINE_BOXES_MAX {
            let message = format!("there are more than {OUTLINE_BOXES_MAX} boxes");
            return Err(Error::new(ErrorKind::TooLarge, message).with_byte_offset(child.offset));
        }
        lines.push(OutlineEntry {
            depth,
            name: child.name,
            offset: child.offset,
            size: child.bytes.len() as u64,
        });
        if CONTAINERS.contains(&&child.name) {
            append_outline_entries(child.body, child.body_offset(), depth + 1, lines)
                .map_err(|error| error.with_enclosing_box(child.name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn nest_moov_boxes(depth: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..depth {
            let inner = std::mem::take(&mut bytes);
            write_box(&mut bytes, b"moov", |out| out.extend_from_slice(&inner));
        }
        bytes
    }

    #[test]
    fn boxes_are_listed_with_depth_and_offset() {
        let lines = list_boxes(&nest_moov_boxes(3), 10).unwrap();
        let flat: Vec<_> = lines.iter().map(|l| (l.depth, l.offset, l.size)).collect();
        assert_eq!(flat, [(0, 10, 24), (1, 18, 16), (2, 26, 8)]);
    }

    #[test]
    fn a_thousand_boxes_deep_is_an_error_that_names_the_bound() {
        let error = list_boxes(&nest_moov_boxes(1000), 0).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(error.message.contains("16"), "{error}");
        assert!(list_boxes(&nest_moov_boxes(16), 0).is_ok());
    }
}
