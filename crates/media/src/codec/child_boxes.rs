//! Sample entries (ISO/IEC 14496-12, 8.5.2) and their child boxes.

use crate::bytes::{ByteReader, write_box};
use crate::error::{Error, ErrorKind, Result, format_fourcc};

/// Maximum size of a sample entry, in bytes. Real entries have a few hundred bytes.
const SIZE_MAX: usize = 1 << 20;
/// Maximum number of child boxes in one sample entry. Real entries have up to ten child boxes.
const CHILDREN_MAX: usize = 256;

/// A box inside a sample entry.
#[derive(Debug, Clone, Copy)]
pub struct ChildBox<'a> {
    /// Four-letter code.
    pub name: [u8; 4],
    /// Content after the box header.
    pub body: &'a [u8],
}

/// The child boxes of a sample entry, in order.
#[derive(Debug, Clone, Default)]
pub struct ChildBoxes<'a>(pub Vec<ChildBox<'a>>);

/// Splits the whole box `entry` into its four-letter code and its body.
///
/// # Errors
/// Returns `TooLarge` if the entry exceeds the size limit, and `Malformed` if the box size is
/// wrong.
pub fn split_code_and_body(entry: &[u8]) -> Result<([u8; 4], &[u8])> {
    if entry.len() > SIZE_MAX {
        let message = format!(
            "a sample entry of {} bytes; at most {SIZE_MAX} are read",
            entry.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    match split_first_box(entry) {
        Some((child, [])) => Ok((child.name, child.body)),
        _ => Err(Error::malformed(
            "the size of the sample entry differs from that of its box",
        )),
    }
}

/// Returns the first box of `bytes` and the bytes after it; `None` if the box is longer than
/// `bytes`.
fn split_first_box(bytes: &[u8]) -> Option<(ChildBox<'_>, &[u8])> {
    let mut reader = ByteReader::new(bytes);
    let (size, name) = (reader.u32() as usize, reader.read_array());
    let (size, header) = match size {
        0 => (bytes.len(), 8),
        1 => (usize::try_from(reader.u64()).ok()?, 16),
        size => (size, 8),
    };
    let (whole, rest) = bytes.split_at_checked(size)?;
    let body = whole.get(header..)?;
    Some((ChildBox { name, body }, rest))
}

impl<'a> ChildBoxes<'a> {
    /// Parses the boxes of `bytes`. Stops at four zero bytes, which end the list in some QuickTime
    /// files.
    ///
    /// # Errors
    /// Returns `Malformed` for a truncated box, and `TooLarge` if there are too many boxes.
    pub fn parse(bytes: &'a [u8]) -> Result<ChildBoxes<'a>> {
        let mut list = Vec::new();
        let mut rest = bytes;
        while rest.len() >= 8 && rest[..4] != [0; 4] {
            let Some((child, after)) = split_first_box(rest) else {
                return Err(Error::malformed("a box in the sample entry is truncated"));
            };
            list.push(child);
            rest = after;
            if list.len() > CHILDREN_MAX {
                let message = format!("more than {CHILDREN_MAX} boxes in a sample entry");
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
        }
        Ok(ChildBoxes(list))
    }

    /// Returns the body of the first child called `name`.
    pub fn find_body(&self, name: &[u8; 4]) -> Option<&'a [u8]> {
        self.0
            .iter()
            .find(|child| child.name == *name)
            .map(|child| child.body)
    }

    /// Returns the body of the child called `name`, which an entry with code `entry_code` requires.
    ///
    /// # Errors
    /// Returns `Malformed` if the child is missing.
    pub fn require_body(&self, name: &[u8; 4], entry_code: [u8; 4]) -> Result<&'a [u8]> {
        let message = || {
            format!(
                "{} has no {} box",
                format_fourcc(entry_code),
                format_fourcc(*name)
            )
        };
        self.find_body(name)
            .ok_or_else(|| Error::malformed(message()))
    }

    /// Appends all boxes to `out`.
    pub fn write_boxes(&self, out: &mut Vec<u8>) {
        for child in &self.0 {
            write_box(out, &child.name, |out| out.extend_from_slice(child.body));
        }
    }
}
