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
    /// How the picture is turned, mirrored and moved: a, b, u, c, d, v, x, y, w, as 16.16 and (the
    /// third of each row) 2.30 numbers.
    pub matrix: [i32; 9],
}

/// The matrix that leaves a picture as it is.
pub const UPRIGHT: [i32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

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
        let matrix = [0; 9].map(|_: i32| reader.i32());
        let matrix = if reader.done().is_ok() {
            matrix
        } else {
            UPRIGHT
        };
        Ok(Tkhd {
            id,
            enabled: flags & 1 != 0,
            matrix,
        })
    }

    /// Whether the picture is to be shown as it is stored: neither turned nor mirrored.
    pub fn is_upright(&self) -> bool {
        let [a, b, _, c, d, ..] = self.matrix;
        b == 0 && c == 0 && a >= 0 && d >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNED: [i32; 9] = [0, 0x1_0000, 0, -0x1_0000, 0, 0, 720 << 16, 0, 0x4000_0000];

    fn body(version: u8, matrix: [i32; 9]) -> Vec<u8> {
        let mut out = vec![version, 0, 0, 3];
        out.resize(if version == 1 { 20 } else { 12 }, 0);
        out.extend(9u32.to_be_bytes());
        out.resize(out.len() + if version == 1 { 28 } else { 24 }, 0);
        matrix
            .iter()
            .for_each(|value| out.extend(value.to_be_bytes()));
        out
    }

    #[test]
    fn both_versions_and_a_turned_picture() {
        for version in [0, 1] {
            let upright = Tkhd::parse(&body(version, UPRIGHT)).unwrap();
            assert_eq!((upright.id, upright.enabled), (9, true));
            assert!(upright.is_upright());
            let turned = Tkhd::parse(&body(version, TURNED)).unwrap();
            assert!(!turned.is_upright());
            assert_eq!(turned.matrix, TURNED);
        }
        assert!(Tkhd::parse(&body(0, TURNED)[..16]).unwrap().is_upright());
        assert!(Tkhd::parse(&body(0, TURNED)[..15]).is_err());
    }
}
