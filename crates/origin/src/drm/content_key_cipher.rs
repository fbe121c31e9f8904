//! AES-128 encryption with a content key, for samples and for PlayReady's checksum.

use super::content_key::{ContentKey, KEY_BYTES};
use aws_lc_rs::cipher::{
    AES_128, EncryptingKey, EncryptionContext, StreamingEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use media::protection::{Aes128Cipher, BlockCipher, KeyId};

/// A cipher with its content key. When the cipher is dropped, this copy of the key and the copy in
/// aws-lc are wiped.
pub(crate) struct ContentKeyCipher {
    key: ContentKey,
    counter_mode: EncryptingKey,
}

/// Encrypts single blocks, from which the caller builds CBC chains.
struct ContentBlockCipher(StreamingEncryptingKey);

impl ContentKeyCipher {
    /// Creates the cipher for a content key.
    pub(crate) fn new(key: &ContentKey) -> Result<ContentKeyCipher, media::Error> {
        let unbound = UnboundCipherKey::new(&AES_128, key.expose());
        let counter_mode = unbound.and_then(EncryptingKey::ctr);
        Ok(ContentKeyCipher {
            key: key.clone(),
            counter_mode: counter_mode.map_err(cipher_failed)?,
        })
    }
}

impl Aes128Cipher for ContentKeyCipher {
    fn encrypt_ctr(&self, counter: [u8; KEY_BYTES], bytes: &mut [u8]) -> Result<(), media::Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(counter));
        let done = self.counter_mode.less_safe_encrypt(bytes, context);
        done.map(drop).map_err(cipher_failed)
    }

    fn block_cipher(&self) -> Result<impl BlockCipher, media::Error> {
        // Of aws-lc's interfaces for block encryption, the streaming interface has the lowest cost
        // per call.
        let unbound = UnboundCipherKey::new(&AES_128, self.key.expose());
        let key = unbound.and_then(StreamingEncryptingKey::ecb_pkcs7);
        key.map(ContentBlockCipher).map_err(cipher_failed)
    }
}

impl BlockCipher for ContentBlockCipher {
    fn encrypt_blocks(&mut self, blocks: &[u8], out: &mut [u8]) -> Result<(), media::Error> {
        // Each update immediately writes all complete blocks. Padding would be added only by the
        // final call, which is never made.
        let update = self.0.less_safe_update(blocks, out);
        let update = update.map_err(cipher_failed)?;
        match update.written().len() == blocks.len() {
            true => Ok(()),
            false => Err(cipher_failed(Unspecified)),
        }
    }
}

/// Returns PlayReady's checksum, with which old clients detect a wrong key. The little-endian key
/// id is encrypted with the key. The checksum is the first 8 bytes of the encrypted key id.
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
