//! Sample entries (ISO/IEC 14496-12, 8.5.2): the box, and the boxes inside it.

use crate::bytes::{Reader, write_box};
use crate::error::{Error, Kind, Result, fourcc};

/// The largest sample entry read, in bytes: real ones have a few hundred.
const SIZE_MAX: usize = 1 << 20;
/// The most child boxes read in one sample entry: real ones have up to ten.
const CHILDREN_MAX: usize = 256;

/// A box inside a sample entry.
#[derive(Debug, Clone, Copy)]
pub struct Child<'a> {
    /// Four-letter code.
    pub name: [u8; 4],
    /// What follows the box header.
    pub body: &'a [u8],
}

/// The child boxes of a sample entry, in their order.
#[derive(Debug, Clone, Default)]
pub struct Children<'a>(pub Vec<Child<'a>>);

/// Splits the whole box `entry` into code and body.
pub fn open(entry: &[u8]) -> Result<([u8; 4], &[u8])> {
    if entry.len() > SIZE_MAX {
        let what = format!(
            "a sample entry of {} bytes; at most {SIZE_MAX}",
            entry.len()
        );
        return Err(Error::new(Kind::TooLarge, what));
    }
    match next(entry) {
        Some((child, [])) => Ok((child.name, child.body)),
        _ => Err(Error::malformed(
            "the size of the sample entry is not that of its box",
        )),
    }
}

/// The first box of `bytes` and what follows it; none if it does not fit.
fn next(bytes: &[u8]) -> Option<(Child<'_>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let (size, name) = (reader.u32() as usize, reader.array());
    let (size, header) = match size {
        0 => (bytes.len(), 8),
        1 => (usize::try_from(reader.u64()).ok()?, 16),
        size => (size, 8),
    };
    let (whole, rest) = bytes.split_at_checked(size)?;
    let body = whole.get(header..)?;
    Some((Child { name, body }, rest))
}

impl<'a> Children<'a> {
    /// Reads the boxes of `bytes`. QuickTime ends some lists with four zero bytes: they end it.
    pub fn read(bytes: &'a [u8]) -> Result<Children<'a>> {
        let mut list = Vec::new();
        let mut rest = bytes;
        while rest.len() >= 8 && rest[..4] != [0; 4] {
            let Some((child, after)) = next(rest) else {
                return Err(Error::malformed("a box in the sample entry is cut off"));
            };
            list.push(child);
            rest = after;
            if list.len() > CHILDREN_MAX {
                let what = format!("more than {CHILDREN_MAX} boxes in a sample entry");
                return Err(Error::new(Kind::TooLarge, what));
            }
        }
        Ok(Children(list))
    }

    /// The body of the first child called `name`.
    pub fn find(&self, name: &[u8; 4]) -> Option<&'a [u8]> {
        self.0
            .iter()
            .find(|child| child.name == *name)
            .map(|child| child.body)
    }

    /// The body of the child called `name`, which the entry `of` cannot do without.
    pub fn need(&self, name: &[u8; 4], of: [u8; 4]) -> Result<&'a [u8]> {
        let what = || format!("{} has no {} box", fourcc(of), fourcc(*name));
        self.find(name).ok_or_else(|| Error::malformed(what()))
    }

    /// Writes the boxes one after another.
    pub fn write(&self, out: &mut Vec<u8>) {
        for child in &self.0 {
            write_box(out, &child.name, |out| out.extend_from_slice(child.body));
        }
    }
}
