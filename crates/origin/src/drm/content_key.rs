//! A content key in memory.

use aws_lc_rs::hmac;
use std::fmt;
use zeroize::Zeroizing;

/// Number of bytes of a key, of an IV and of a cipher block.
pub(crate) const KEY_BYTES: usize = 16;

/// A content key. Its memory is wiped when the key is dropped. The key is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ContentKey(Zeroizing<[u8; KEY_BYTES]>);

impl ContentKey {
    /// Creates a key from its bytes.
    pub(crate) fn new(bytes: [u8; KEY_BYTES]) -> ContentKey {
        ContentKey(Zeroizing::new(bytes))
    }

    /// Returns the bytes of the key, for a cipher or a license.
    pub(crate) fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Derives bytes that do not reveal the key. These are the first 16 bytes of the HMAC-SHA256 of
    /// `words`.
    pub(crate) fn derive_bytes(&self, words: &[&[u8]]) -> [u8; KEY_BYTES] {
        derive_bytes(&hmac::Key::new(hmac::HMAC_SHA256, self.expose()), words)
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey(…)")
    }
}

/// Returns the first 16 bytes of the HMAC-SHA256 of the concatenated `words`.
pub(crate) fn derive_bytes(key: &hmac::Key, words: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut context = hmac::Context::with_key(key);
    words.iter().for_each(|word| context.update(word));
    let tag = context.sign();
    std::array::from_fn(|at| tag.as_ref().get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::{Zeroize, ZeroizeOnDrop};

    #[test]
    fn a_key_is_wiped_on_drop() {
        fn require_wiping<T: ZeroizeOnDrop>(_: &T) {}
        let mut key = ContentKey::new([0xab; 16]);
        require_wiping(&key.0);
        assert_eq!(key.expose(), &[0xab; 16]);
        // The test calls `zeroize` itself, because the memory of a dropped key cannot be read.
        // Dropping the key calls the same function.
        key.0.zeroize();
        assert_eq!(key.expose(), &[0; 16]);
    }

    #[test]
    fn a_key_is_never_printed() {
        let key = ContentKey::new([0xab; 16]);
        assert_eq!(format!("{key:?}"), "ContentKey(…)");
    }
}
