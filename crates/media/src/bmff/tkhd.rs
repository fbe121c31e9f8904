//! `tkhd`: track header (8.3.2).

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Identifier and display settings of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tkhd {
    /// `track_ID`.
    pub track_id: u32,
    /// Whether the `track_enabled` flag is set.
    pub is_enabled: bool,
    /// Matrix for the rotation, mirroring and translation of the picture, in the order a, b, u, c,
    /// d, v, x, y, w. The values u, v and w are 2.30 fixed-point numbers. The other values are
    /// 16.16 fixed-point numbers.
    pub matrix: [i32; 9],
}

/// The matrix that leaves the picture unchanged.
pub const IDENTITY_MATRIX: [i32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

impl Tkhd {
    /// Parses the body. If the body does not contain the whole matrix, uses the identity matrix.
    ///
    /// # Errors
    /// Returns `Truncated` if the body does not contain the whole track ID.
    pub fn parse(body: &[u8]) -> Result<Tkhd> {
        let mut reader = ByteReader::new(body);
        let (version, flags) = read_version_and_flags(&mut reader);
        reader.skip(if version == 1 { 16 } else { 8 });
        let id = reader.u32();
        reader.check_no_short_read()?;
        reader.skip(if version == 1 { 28 } else { 24 });
        let matrix = [0; 9].map(|_: i32| reader.i32());
        let matrix = if reader.check_no_short_read().is_ok() {
            matrix
        } else {
            IDENTITY_MATRIX
        };
        Ok(Tkhd {
            track_id: id,
            is_enabled: flags & 1 != 0,
            matrix,
        })
    }

    /// Returns whether the picture is neither rotated nor mirrored.
    pub fn is_upright(&self) -> bool {
        let [a, b, _, c, d, ..] = self.matrix;
        b == 0 && c == 0 && a >= 0 && d >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATED_MATRIX: [i32; 9] = [0, 0x1_0000, 0, -0x1_0000, 0, 0, 720 << 16, 0, 0x4000_0000];

    fn build_body(version: u8, matrix: [i32; 9]) -> Vec<u8> {
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
    fn both_versions_and_a_rotated_picture_are_parsed() {
        for version in [0, 1] {
            let upright = Tkhd::parse(&build_body(version, IDENTITY_MATRIX)).unwrap();
            assert_eq!((upright.track_id, upright.is_enabled), (9, true));
            assert!(upright.is_upright());
            let turned = Tkhd::parse(&build_body(version, ROTATED_MATRIX)).unwrap();
            assert!(!turned.is_upright());
            assert_eq!(turned.matrix, ROTATED_MATRIX);
        }
        assert!(
            Tkhd::parse(&build_body(0, ROTATED_MATRIX)[..16])
                .unwrap()
                .is_upright()
        );
        assert!(Tkhd::parse(&build_body(0, ROTATED_MATRIX)[..15]).is_err());
    }
}
