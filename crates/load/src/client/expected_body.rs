//! Checks the length and the hash of a response body.

use super::FailureKind;
use aws_lc_rs::digest;
use std::ops::Range;

/// The expected properties of a response body. Properties that are `None` are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedBody {
    /// Expected length, in bytes.
    pub length: Option<u64>,
    /// Expected SHA-256.
    pub sha256: Option<[u8; 32]>,
}

/// A hash of the bytes received so far.
#[derive(Clone)]
pub struct BodyDigest(digest::Context);

impl std::fmt::Debug for BodyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest")
    }
}

impl Default for BodyDigest {
    fn default() -> BodyDigest {
        BodyDigest(digest::Context::new(&digest::SHA256))
    }
}

impl BodyDigest {
    /// Adds bytes to the hash.
    pub fn hash_bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the SHA-256 of all bytes.
    pub fn into_sha256(self) -> [u8; 32] {
        let mut sum = [0; 32];
        sum.copy_from_slice(self.0.finish().as_ref());
        sum
    }
}

impl ExpectedBody {
    /// Creates a check of the length of a requested byte range. A server that ignores `Range` sends
    /// the whole resource, which has another length.
    pub(crate) fn check_length(range: &Range<u64>) -> ExpectedBody {
        ExpectedBody {
            length: Some(range.end.saturating_sub(range.start)),
            sha256: None,
        }
    }

    /// Compares the length and the hash of a complete body with the expected values.
    ///
    /// # Errors
    /// [`FailureKind::WrongLength`] or [`FailureKind::WrongHash`].
    pub fn check_body(&self, length: u64, digest: Option<BodyDigest>) -> Result<(), FailureKind> {
        if self.length.is_some_and(|expected| expected != length) {
            return Err(FailureKind::WrongLength);
        }
        match (self.sha256, digest.map(BodyDigest::into_sha256)) {
            (Some(expected), Some(sum)) if expected != sum => Err(FailureKind::WrongHash),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_with_another_length_or_hash_are_refused() {
        let mut digest = BodyDigest::default();
        digest.hash_bytes(b"abc");
        // Test vector of FIPS 180-2, appendix B.1.
        let abc = *b"\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23\
                     \xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad";
        let check = ExpectedBody {
            length: Some(3),
            sha256: Some(abc),
        };
        assert_eq!(check.check_body(3, Some(digest.clone())), Ok(()));
        assert_eq!(
            check.check_body(4, Some(digest)),
            Err(FailureKind::WrongLength)
        );
        let other = Some(BodyDigest::default());
        assert_eq!(check.check_body(3, other), Err(FailureKind::WrongHash));
    }
}
