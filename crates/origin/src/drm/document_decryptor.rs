//! Decrypts the key values of CPIX documents with a recipient's private key.

use aws_lc_rs::cipher::{AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use media::protection::cpix::{DocumentKeys, KeyDocumentDecryptor};
use media::protection::decode_base64;
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of an IV.
const IV_BYTES: usize = 16;

/// The private key of this server.
pub(crate) struct DocumentDecryptor {
    key: OaepPrivateDecryptingKey,
}

impl DocumentDecryptor {
    /// Parses an RSA key in a PEM file (PKCS #8).
    ///
    /// # Errors
    /// The reason why it cannot be used, without its content.
    pub(crate) fn from_pem(pem: &str) -> Result<DocumentDecryptor, String> {
        let remedy = "convert it with `openssl pkcs8 -topk8 -nocrypt`";
        let body = pem.split_once("-----BEGIN PRIVATE KEY-----");
        let body = body.and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"));
        let (text, _) = body.ok_or_else(|| {
            format!("expected an unencrypted PEM file with BEGIN PRIVATE KEY; {remedy}")
        })?;
        let der = decode_base64(text).map(Zeroizing::new);
        let der = der.ok_or_else(|| "its PEM text is damaged".to_owned())?;
        let key = PrivateDecryptingKey::from_pkcs8(&der);
        let key =
            key.map_err(|error| format!("expected an RSA key of 2048 bits or more: {error}"))?;
        let key = OaepPrivateDecryptingKey::new(key);
        let key = key.map_err(|_| "this key cannot be used for RSA-OAEP".to_owned())?;
        Ok(DocumentDecryptor { key })
    }
}

impl fmt::Debug for DocumentDecryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DocumentDecryptor(…)")
    }
}

impl KeyDocumentDecryptor for DocumentDecryptor {
    fn decrypt_for_recipient(&self, value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut plain = Zeroizing::new(vec![0; self.key.key_size_bytes()]);
        let decrypted = self
            .key
            .decrypt(&OAEP_SHA1_MGF1SHA1, value, &mut plain, None);
        let len = decrypted.ok()?.len();
        plain.truncate(len);
        Some(plain)
    }

    fn decrypt_value(
        &self,
        keys: &DocumentKeys,
        value: &[u8],
        mac: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mac_key = hmac::Key::new(hmac::HMAC_SHA512, &keys.mac_key);
        hmac::verify(&mac_key, value, mac).ok()?;
        let (iv, ciphertext) = value.split_first_chunk::<IV_BYTES>()?;
        let mut plain = Zeroizing::new(ciphertext.to_vec());
        let key = UnboundCipherKey::new(&AES_256, &keys.document_key).ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let context = DecryptionContext::Iv128(FixedLength::from(*iv));
        let len = key.decrypt(&mut plain, context).ok()?.len();
        plain.truncate(len);
        Some(plain)
    }
}
