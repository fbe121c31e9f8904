//! What a body should be: its length, its hash.

use super::Fault;
use aws_lc_rs::digest;

/// The expected body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Check {
    /// Its length in bytes.
    pub length: Option<u64>,
    /// Its SHA-256.
    pub sha256: Option<[u8; 32]>,
}

/// A hash of what has come so far.
#[derive(Clone)]
pub struct Digest(digest::Context);

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest")
    }
}

impl Default for Digest {
    fn default() -> Digest {
        Digest(digest::Context::new(&digest::SHA256))
    }
}

impl Digest {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// SHA-256 of all that came.
    pub fn finish(self) -> [u8; 32] {
        let mut sum = [0; 32];
        sum.copy_from_slice(self.0.finish().as_ref());
        sum
    }
}

impl Check {
    /// Judges a whole body.
    ///
    /// # Errors
    /// [`Fault::WrongLength`], [`Fault::WrongHash`].
    pub fn judge(&self, length: u64, digest: Option<Digest>) -> Result<(), Fault> {
        if self.length.is_some_and(|expected| expected != length) {
            return Err(Fault::WrongLength);
        }
        match (self.sha256, digest.map(Digest::finish)) {
            (Some(expected), Some(sum)) if expected != sum => Err(Fault::WrongHash),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_and_hash_are_judged() {
        let mut digest = Digest::default();
        digest.update(b"abc");
        // FIPS 180-2, appendix B.1.
        let abc = *b"\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23\
                     \xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad";
        let check = Check {
            length: Some(3),
            sha256: Some(abc),
        };
        assert_eq!(check.judge(3, Some(digest.clone())), Ok(()));
        assert_eq!(check.judge(4, Some(digest)), Err(Fault::WrongLength));
        let other = Some(Digest::default());
        assert_eq!(check.judge(3, other), Err(Fault::WrongHash));
    }
}
