//! AES-128 decryption with the content key of an encrypted source. Also defines the ciphers of a
//! track that this server encrypts.

use super::content_key::{ContentKey, KEY_BYTES};
use super::content_key_cipher::{ContentKeyCipher, cipher_failed};
use aws_lc_rs::cipher::{AES_128, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use media::protection::{ProtectionScheme, SampleDecipher};
use std::sync::Arc;

/// A cipher with the content key of a source, in the mode of the source's protection scheme. aws-lc
/// wipes the key when the cipher is dropped.
pub(crate) struct SourceCipher {
    key: DecryptingKey,
}

/// The ciphers of a track that this server encrypts.
#[derive(Clone)]
pub(crate) struct TrackCiphers {
    pub(crate) content: Arc<ContentKeyCipher>,
    /// Decrypts the samples before they are encrypted; `None` if the source is not encrypted.
    pub(crate) source: Option<Arc<SourceCipher>>,
}

impl SourceCipher {
    /// Creates the cipher for a content key.
    pub(crate) fn new(
        key: &ContentKey,
        scheme: ProtectionScheme,
    ) -> Result<SourceCipher, media::Error> {
        let unbound = UnboundCipherKey::new(&AES_128, key.expose());
        let key = unbound.and_then(|key| match scheme {
            ProtectionScheme::Cbcs => DecryptingKey::cbc(key),
            ProtectionScheme::Cenc => DecryptingKey::ctr(key),
        });
        Ok(SourceCipher {
            key: key.map_err(cipher_failed)?,
        })
    }

    fn decrypt(&self, iv: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        let done = self.key.decrypt(bytes, context);
        done.map(drop).map_err(cipher_failed)
    }
}

impl SampleDecipher for SourceCipher {
    fn decrypt_cbc(&self, iv: [u8; KEY_BYTES], blocks: &mut [u8]) -> Result<(), media::Error> {
        self.decrypt(iv, blocks)
    }

    fn decrypt_ctr(&self, counter: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        self.decrypt(counter, bytes)
    }
}
