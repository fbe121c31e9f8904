//! AES-128 with a content key, as sample encryption and PlayReady's checksum use it.

use super::content_key::{ContentKey, KEY_BYTES};
use aws_lc_rs::cipher::{
    AES_128, EncryptingKey, EncryptionContext, StreamingEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use media::protection::{BlockCipher, KeyId, SampleCipher};

/// A keyed cipher. Both copies of the key, here and in aws-lc, are wiped when the cipher is
/// dropped.
pub(crate) struct ContentKeyCipher {
    key: ContentKey,
    counter_mode: EncryptingKey,
}

/// Encrypts single blocks; CBC chains are built of them.
struct ContentBlockCipher(StreamingEncryptingKey);

impl ContentKeyCipher {
    /// Expands a key.
    pub(crate) fn new(key: &ContentKey) -> Result<ContentKeyCipher, media::Error> {
        let unbound = UnboundCipherKey::new(&AES_128, key.expose());
        let counter_mode = unbound.and_then(EncryptingKey::ctr);
        Ok(ContentKeyCipher {
            key: key.clone(),
            counter_mode: counter_mode.map_err(cipher_failed)?,
        })
    }
}

impl SampleCipher for ContentKeyCipher {
    fn encrypt_ctr(&self, counter: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(counter));
        let done = self.counter_mode.less_safe_encrypt(bytes, context);
        done.map(drop).map_err(cipher_failed)
    }

    fn block_cipher(&self) -> Result<impl BlockCipher, media::Error> {
        // Of aws-lc's interfaces, this one has the least cost per call.
        let unbound = UnboundCipherKey::new(&AES_128, self.key.expose());
        let key = unbound.and_then(StreamingEncryptingKey::ecb_pkcs7);
        key.map(ContentBlockCipher).map_err(cipher_failed)
    }
}

impl BlockCipher for ContentBlockCipher {
    fn encrypt_blocks(&mut self, blocks: &[u8], out: &mut [u8]) -> Result<(), media::Error> {
        // An update writes all whole blocks immediately. Only the final call, which is never made,
        // would add padding.
        let update = self.0.less_safe_update(blocks, out);
        let update = update.map_err(cipher_failed)?;
        match update.written().len() == blocks.len() {
            true => Ok(()),
            false => Err(cipher_failed(Unspecified)),
        }
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
