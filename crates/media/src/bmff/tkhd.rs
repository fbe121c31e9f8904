//! `tkhd`: track header (8.3.2).

use super::version_and_flags;
use crate::bytes::Reader;
use crate::error::Result;

/// A track's number, and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tkhd {
    /// `track_ID`.
    pub id: u32,
    /// Whether the file wants it played by default.
    pub enabled: bool,
    /// The part of the matrix that turns and mirrors, as 16.16: a, b, c, d.
    pub matrix: [i32; 4],
}

const ONE: i32 = 0x0001_0000;

impl Tkhd {
    /// Reads the body of the box. A box that ends before the matrix has an upright one.
    ///
    /// # Errors
    /// `Truncated` if it is too short.
    pub fn parse(body: &[u8]) -> Result<Tkhd> {
        let mut reader = Reader::new(body);
        let (version, flags) = version_and_flags(&mut reader);
        reader.skip(if version == 1 { 16 } else { 8 });
        let id = reader.u32();
        reader.done()?;
        reader.skip(if version == 1 { 28 } else { 24 });
        let row = |reader: &mut Reader<'_>| {
            let pair = [reader.i32(), reader.i32()];
            reader.skip(4);
            pair
        };
        let ([a, b], [c, d]) = (row(&mut reader), row(&mut reader));
        let matrix = if reader.done().is_ok() {
            [a, b, c, d]
        } else {
            [ONE, 0, 0, ONE]
        };
        Ok(Tkhd {
            id,
            enabled: flags & 1 != 0,
            matrix,
        })
    }

    /// Whether the picture is to be shown as it is stored: neither turned nor mirrored.
    pub fn is_upright(&self) -> bool {
        let [a, b, c, d] = self.matrix;
        b == 0 && c == 0 && a >= 0 && d >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(version: u8, matrix: [i32; 4]) -> Vec<u8> {
        let mut out = vec![version, 0, 0, 3];
        out.resize(if version == 1 { 20 } else { 12 }, 0);
        out.extend(9u32.to_be_bytes());
        out.resize(out.len() + if version == 1 { 28 } else { 24 }, 0);
        for value in [
            matrix[0],
            matrix[1],
            0,
            matrix[2],
            matrix[3],
            0,
            0,
            0,
            1 << 30,
        ] {
            out.extend(value.to_be_bytes());
        }
        out
    }

    #[test]
    fn both_versions_and_a_turned_picture() {
        for version in [0, 1] {
            let upright = Tkhd::parse(&body(version, [ONE, 0, 0, ONE])).unwrap();
            assert_eq!((upright.id, upright.enabled), (9, true));
            assert!(upright.is_upright());
            let turned = Tkhd::parse(&body(version, [0, ONE, -ONE, 0])).unwrap();
            assert!(!turned.is_upright());
        }
        assert!(Tkhd::parse(&body(0, [0; 4])[..16]).unwrap().is_upright());
        assert!(Tkhd::parse(&body(0, [0; 4])[..15]).is_err());
    }
}
