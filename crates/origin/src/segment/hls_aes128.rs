//! AES-128 encryption of HLS segments (RFC 8216, 4.3.2.4 and 5.2). Whole segments are encrypted in
//! cipher block chaining mode with PKCS#7 padding. Each title has a key, which is derived from a
//! secret and the title's path. Several origins and an external key server can therefore derive the
//! same key independently. The initialization vector of a segment is the segment's media sequence
//! number.

use crate::error;
use crate::route;
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use media::manifest::hls::encrypted_len;
use net::Error;
use std::sync::Arc;
use store::Key;
use zeroize::Zeroizing;

/// Length of a key and of a cipher block, in bytes.
const BLOCK_BYTES: usize = 16;
/// Allowed length of the secret, in bytes.
pub(crate) const SECRET_BYTES_RANGE: std::ops::RangeInclusive<usize> = 16..=4096;
/// Key URL, relative to the folder of a rendition.
const LOCAL_KEY_URL: &str = "../../.key";
/// Placeholder for the title's path in a key URL.
pub(crate) const TITLE_PLACEHOLDER: &str = "{title}";

/// The secret from which title keys are derived.
pub(crate) struct MasterSecret {
    secret: hmac::Key,
    /// Key URL of an external key server, if any.
    key_url: Option<String>,
}

/// The encryption key of a title, and the URL of this key.
pub(crate) struct TitleAes128Key {
    /// The key, which is wiped from memory when it is dropped.
    key_bytes: Zeroizing<[u8; BLOCK_BYTES]>,
    key: Arc<EncryptingKey>,
    /// Key URL of an external key server, if any.
    external_key_url: Option<String>,
    version: u64,
}

/// The key and the initialization vector of a single segment.
pub(crate) struct SegmentEncryption {
    key: Arc<EncryptingKey>,
    iv: [u8; BLOCK_BYTES],
}

/// Encrypts a segment in place while it is written.
pub(crate) struct CbcEncryptor {
    key: Arc<EncryptingKey>,
    iv: [u8; BLOCK_BYTES],
    encrypted_len: usize,
}

impl MasterSecret {
    /// Creates the secret from bytes whose length is within [`SECRET_BYTES_RANGE`].
    pub(crate) fn new(secret: &[u8], key_url: Option<&str>) -> MasterSecret {
        MasterSecret {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            key_url: key_url.map(str::to_owned),
        }
    }

    /// Derives the title's key, which is the first half of the HMAC-SHA256 of a fixed label and the
    /// title's path.
    pub(crate) fn derive_title_key(&self, title: &Key) -> Result<TitleAes128Key, Error> {
        let words = ["headwater aes-128\n", title.as_str()];
        let bytes = Zeroizing::new(self.derive_bytes::<BLOCK_BYTES>(&words));
        let key = UnboundCipherKey::new(&AES_128, &*bytes).and_then(EncryptingKey::cbc);
        let elsewhere = self.key_url.as_ref();
        Ok(TitleAes128Key {
            key_bytes: bytes,
            key: Arc::new(key.map_err(encryption_failed)?),
            external_key_url: elsewhere
                .map(|url| url.replace(TITLE_PLACEHOLDER, &route::escape_strictly(title))),
            version: u64::from_be_bytes(self.derive_bytes(&["headwater set\n"])),
        })
    }

    fn derive_bytes<const N: usize>(&self, words: &[&str]) -> [u8; N] {
        let mut context = hmac::Context::with_key(&self.secret);
        words
            .iter()
            .for_each(|word| context.update(word.as_bytes()));
        let tag = context.sign();
        std::array::from_fn(|at| tag.as_ref().get(at).copied().unwrap_or_default())
    }
}

impl TitleAes128Key {
    /// Returns the key if this server provides it to players.
    pub(crate) fn key_for_players(&self) -> Option<[u8; BLOCK_BYTES]> {
        self.external_key_url.is_none().then_some(*self.key_bytes)
    }

    /// Returns the key URL for the title's media playlists.
    pub(crate) fn key_url(&self) -> &str {
        self.external_key_url.as_deref().unwrap_or(LOCAL_KEY_URL)
    }

    /// Returns a hash of the secret. Segment URLs depend on this hash, because another secret
    /// changes the bytes of all segments.
    pub(crate) fn secret_version(&self) -> u64 {
        self.version
    }

    /// Returns the key and the initialization vector for the segment with this media sequence
    /// number.
    pub(crate) fn segment_encryption(&self, sequence: u64) -> SegmentEncryption {
        SegmentEncryption {
            key: self.key.clone(),
            iv: u128::from(sequence).to_be_bytes(),
        }
    }
}

impl SegmentEncryption {
    /// Starts the encryption of the segment.
    pub(crate) fn start_encryption(&self) -> CbcEncryptor {
        CbcEncryptor {
            key: self.key.clone(),
            iv: self.iv,
            encrypted_len: 0,
        }
    }
}

impl CbcEncryptor {
    /// Encrypts the complete blocks in the first `written` bytes of `out`. Skips the blocks that
    /// are already encrypted.
    pub(crate) fn encrypt_blocks(&mut self, out: &mut [u8], written: usize) -> Result<(), Error> {
        let complete_len = written - written % BLOCK_BYTES;
        let blocks = out
            .get_mut(self.encrypted_len..complete_len)
            .unwrap_or_default();
        if blocks.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(self.iv));
        let encrypted = self.key.less_safe_encrypt(blocks, context);
        encrypted.map_err(encryption_failed)?;
        if let Some(last) = blocks.last_chunk() {
            self.iv = *last;
        }
        self.encrypted_len = complete_len;
        Ok(())
    }

    /// Pads the segment, encrypts the remaining blocks, and returns the total length. `out` must
    /// have room for the padding.
    pub(crate) fn finish_encryption(
        mut self,
        out: &mut [u8],
        written: usize,
    ) -> Result<usize, Error> {
        let len = encrypted_len(written as u64) as usize;
        let padding = out.get_mut(written..len);
        let padding = padding.ok_or_else(|| {
            Error::new_internal_error("no room for the padding of an encrypted segment")
        })?;
        padding.fill(padding.len() as u8);
        self.encrypt_blocks(out, len)?;
        Ok(len)
    }
}

fn encryption_failed(_: Unspecified) -> Error {
    Error::new_internal_error("cannot encrypt a segment")
}

/// Returns the error for a resource that is unavailable because its title is encrypted with
/// AES-128.
pub(crate) fn unavailable_when_encrypted(what: &str) -> Error {
    error::not_found(&format!(
        "{what}: the film is encrypted and available as HLS only"
    ))
}

/// Returns the error for a resource that is unavailable because its title uses Common Encryption.
/// Such a resource would be unencrypted, or its format does not support Common Encryption.
pub(crate) fn unavailable_with_drm(what: &str) -> Error {
    error::not_found(&format!(
        "{what}: the film is encrypted and available as CMAF only"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn title(path: &str) -> Key {
        Key::parse(path).unwrap_or_else(|bad| panic!("{path}: {bad}"))
    }

    fn title_encryption(path: &str) -> TitleAes128Key {
        MasterSecret::new(&[7; 32], None)
            .derive_title_key(&title(path))
            .unwrap()
    }

    /// Encrypts the segment `clear` in steps. `steps` contains the number of bytes that each step
    /// adds. After the last step, encrypts the rest of the segment.
    fn encrypt_in_steps(encryption: &SegmentEncryption, clear: &[u8], steps: &[usize]) -> Vec<u8> {
        let (mut out, mut encryptor, mut written) =
            (clear.to_vec(), encryption.start_encryption(), 0);
        out.resize(encrypted_len(clear.len() as u64) as usize, 0xee);
        for step in steps {
            written = clear.len().min(written + step);
            encryptor.encrypt_blocks(&mut out, written).unwrap();
        }
        let len = encryptor.finish_encryption(&mut out, clear.len()).unwrap();
        assert_eq!(len, out.len());
        out
    }

    #[test]
    fn title_keys_are_wiped_on_drop() {
        fn require_wiping<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let secret = MasterSecret::new(&[1; 32], None);
        let title = Key::parse("film.mp4").unwrap();
        require_wiping(&secret.derive_title_key(&title).unwrap().key_bytes);
    }

    /// Uses the key, the initialization vector and the first block of NIST SP 800-38A, F.2.1.
    #[test]
    fn a_nist_test_vector_encrypts_as_published() {
        let key = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c,
        ];
        let clear = [
            0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93,
            0x17, 0x2a,
        ];
        let key = UnboundCipherKey::new(&AES_128, &key).and_then(EncryptingKey::cbc);
        let known = SegmentEncryption {
            key: Arc::new(key.unwrap()),
            iv: std::array::from_fn(|n| n as u8),
        };
        let expected = [
            0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9,
            0x19, 0x7d,
        ];
        assert_eq!(encrypt_in_steps(&known, &clear, &[])[..16], expected);
    }

    #[test]
    fn titles_and_secrets_have_keys_of_their_own() {
        let other = MasterSecret::new(&[8; 32], None)
            .derive_title_key(&title("a"))
            .unwrap();
        let (a, b) = (title_encryption("a"), title_encryption("b"));
        assert_ne!(a.key_for_players(), b.key_for_players());
        assert_ne!(a.key_for_players(), other.key_for_players());
        assert_eq!(a.secret_version(), b.secret_version());
        assert_ne!(a.secret_version(), other.secret_version());
        assert_eq!(a.key_for_players(), title_encryption("a").key_for_players());
    }

    #[test]
    fn an_external_key_is_not_served() {
        let secret = MasterSecret::new(&[7; 32], Some("https://keys.example/{title}?v=1"));
        let title_key = secret.derive_title_key(&title("a&b=c+d/ü 1.mp4")).unwrap();
        assert_eq!(title_key.key_for_players(), None);
        let url = "https://keys.example/a%26b%3Dc%2Bd/%C3%BC%201.mp4?v=1";
        assert_eq!(title_key.key_url(), url);
    }

    proptest! {
        #[test]
        fn encryption_in_steps_equals_one_step_and_is_reversible(
            clear in prop::collection::vec(any::<u8>(), 0..400),
            steps in prop::collection::vec(0usize..90, 0..8),
            sequence: u64,
        ) {
            use aws_lc_rs::cipher::{DecryptionContext, PaddedBlockDecryptingKey};
            let title_key = title_encryption("a");
            let mut out = encrypt_in_steps(&title_key.segment_encryption(sequence), &clear, &steps);
            prop_assert_eq!(&out, &encrypt_in_steps(&title_key.segment_encryption(sequence), &clear, &[]));
            prop_assert_eq!(out.len() as u64, encrypted_len(clear.len() as u64));
            let key = UnboundCipherKey::new(&AES_128, &*title_key.key_bytes).unwrap();
            let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).unwrap();
            let iv = u128::from(sequence).to_be_bytes();
            let context = DecryptionContext::Iv128(FixedLength::from(iv));
            prop_assert_eq!(key.decrypt(&mut out, context).unwrap(), &clear[..]);
        }
    }
}
