//! All boxes of a slice as a list of lines, for people and for golden tests.

use super::Children;
use crate::error::{Error, Kind, Result};

/// How deep boxes may nest. Real files stay under 12.
pub const DEPTH_MAX: usize = 16;

/// How many boxes an outline may have.
pub const OUTLINE_MAX: usize = 100_000;

/// One box of an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// How many boxes it is in.
    pub depth: usize,
    /// Four-letter code.
    pub name: [u8; 4],
    /// Offset of its header in the file.
    pub at: u64,
    /// Bytes, header included.
    pub size: u64,
}

/// Boxes that hold nothing but boxes.
const CONTAINERS: [&[u8; 4]; 14] = [
    b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl", b"mvex", b"moof", b"traf",
    b"mfra", b"tref", b"udta", b"sinf",
];

/// Lists all boxes in `bytes`, which lie at `at` in the file, outermost first.
///
/// # Errors
/// `TooLarge` beyond [`DEPTH_MAX`] or [`OUTLINE_MAX`]; else what is wrong with a box's size.
pub fn outline(bytes: &[u8], at: u64) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    list(bytes, at, 0, &mut lines)?;
    Ok(lines)
}

fn list(bytes: &[u8], at: u64, depth: usize, lines: &mut Vec<Line>) -> Result<()> {
    for child in Children::new(bytes, at) {
        let child = child?;
        if depth >= DEPTH_MAX {
            let what = format!("boxes are nested more than {DEPTH_MAX} deep");
            return Err(Error::new(Kind::TooLarge, what).at(child.at));
        }
        if lines.len() >= OUTLINE_MAX {
            let what = format!("there are more than {OUTLINE_MAX} boxes");
            return Err(Error::new(Kind::TooLarge, what).at(child.at));
        }
        lines.push(Line {
            depth,
            name: child.name,
            at: child.at,
            size: child.whole.len() as u64,
        });
        if CONTAINERS.contains(&&child.name) {
            list(child.body, child.body_at(), depth + 1, lines)
                .map_err(|error| error.inside(child.name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn nest(depth: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..depth {
            let inner = std::mem::take(&mut bytes);
            write_box(&mut bytes, b"moov", |out| out.extend_from_slice(&inner));
        }
        bytes
    }

    #[test]
    fn lists_boxes_with_depth_and_place() {
        let lines = outline(&nest(3), 10).unwrap();
        let flat: Vec<_> = lines.iter().map(|l| (l.depth, l.at, l.size)).collect();
        assert_eq!(flat, [(0, 10, 24), (1, 18, 16), (2, 26, 8)]);
    }

    #[test]
    fn a_thousand_boxes_deep_is_an_error_that_names_the_bound() {
        let error = outline(&nest(1000), 0).unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge);
        assert!(error.what.contains("16"), "{error}");
        assert!(outline(&nest(16), 0).is_ok());
    }
}
