//! AES-128 with a content key, as sample encryption and PlayReady's checksum use it.

use super::content_key::{ContentKey, KEY_BYTES};
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use media::protection::{KeyId, ProtectionScheme, SampleCipher};

/// A keyed cipher in the mode of its scheme. aws-lc wipes the key when it is dropped.
pub(crate) struct ContentCipher {
    key: EncryptingKey,
}

impl ContentCipher {
    /// Expands a key.
    pub(crate) fn new(
        key: &ContentKey,
        scheme: ProtectionScheme,
    ) -> Result<ContentCipher, media::Error> {
        let unbound = UnboundCipherKey::new(&AES_128, key.expose());
        let key = unbound.and_then(|key| match scheme {
            ProtectionScheme::Cbcs => EncryptingKey::cbc(key),
            ProtectionScheme::Cenc => EncryptingKey::ctr(key),
        });
        Ok(ContentCipher {
            key: key.map_err(cipher_failed)?,
        })
    }

    fn encrypt(&self, iv: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        let done = self.key.less_safe_encrypt(bytes, context);
        done.map(drop).map_err(cipher_failed)
    }
}

impl SampleCipher for ContentCipher {
    fn encrypt_cbc(&self, iv: [u8; KEY_BYTES], blocks: &mut [u8]) -> Result<(), media::Error> {
        self.encrypt(iv, blocks)
    }

    fn encrypt_ctr(&self, counter: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        self.encrypt(counter, bytes)
    }
}

/// Returns PlayReady's checksum: the first 8 bytes of the little-endian key id, encrypted with the
/// key. It lets old clients detect a wrong key.
pub(crate) fn playready_checksum(key: &ContentKey, guid: KeyId) -> Result<[u8; 8], media::Error> {
    let unbound = UnboundCipherKey::new(&AES_128, key.expose());
    let cipher = unbound
        .and_then(EncryptingKey::ecb)
        .map_err(cipher_failed)?;
    let mut block = guid;
    cipher.encrypt(&mut block).map_err(cipher_failed)?;
    Ok(block.first_chunk().copied().unwrap_or_default())
}

pub(super) fn cipher_failed(_: Unspecified) -> media::Error {
    media::Error::unsupported("the cipher failed")
}
