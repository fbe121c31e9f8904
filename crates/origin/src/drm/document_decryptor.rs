//! Decrypts the key values of CPIX documents with the private key of the recipient, which is this
//! server.

use aws_lc_rs::cipher::{AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use media::protection::cpix::{DocumentKeys, KeyDocumentDecryptor};
use media::protection::decode_base64;
use std::fmt;
use zeroize::Zeroizing;

/// Number of bytes of an IV.
const IV_BYTES: usize = 16;

/// The private key of this server, with its public key and certificate.
pub(crate) struct DocumentDecryptor {
    key: OaepPrivateDecryptingKey,
    /// The public key in the form in which certificates contain it (RFC 5280, 4.1:
    /// `SubjectPublicKeyInfo`).
    public_key: Vec<u8>,
    /// Certificate of the public key (X.509, DER). A key server encrypts key values for this
    /// certificate.
    certificate: Option<Vec<u8>>,
}

impl DocumentDecryptor {
    /// Parses an RSA key in a PEM file (PKCS #8).
    ///
    /// # Errors
    /// The reason why the key cannot be used. The message does not contain the key.
    pub(crate) fn from_pem(pem: &str) -> Result<DocumentDecryptor, String> {
        let remedy = "convert it with `openssl pkcs8 -topk8 -nocrypt`";
        let text = find_pem_text(pem, "PRIVATE KEY").ok_or_else(|| {
            format!("expected an unencrypted PEM file with BEGIN PRIVATE KEY; {remedy}")
        })?;
        let der = decode_pem_text(text)?;
        let key = PrivateDecryptingKey::from_pkcs8(&der);
        let key =
            key.map_err(|error| format!("expected an RSA key of 2048 bits or more: {error}"))?;
        let public_key: Result<PublicKeyX509Der<'_>, _> = key.public_key().as_der();
        let public_key = public_key.map_err(|_| "its public key cannot be computed".to_owned())?;
        let public_key = public_key.as_ref().to_vec();
        let key = OaepPrivateDecryptingKey::new(key);
        let key = key.map_err(|_| "this key cannot be used for RSA-OAEP".to_owned())?;
        Ok(DocumentDecryptor {
            key,
            public_key,
            certificate: None,
        })
    }

    /// Adds the certificate of the private key, from a PEM file.
    ///
    /// # Errors
    /// The reason why the certificate cannot be used. For example, it may be the certificate of
    /// another key.
    pub(crate) fn with_certificate(mut self, pem: &str) -> Result<DocumentDecryptor, String> {
        let text = find_pem_text(pem, "CERTIFICATE");
        let text = text.ok_or("expected a PEM file with BEGIN CERTIFICATE")?;
        let der = decode_pem_text(text)?;
        let has_own_key = |part: &[u8]| part == self.public_key;
        if !der.windows(self.public_key.len()).any(has_own_key) {
            return Err("it is not the certificate of the key of --drm-private-key".to_owned());
        }
        self.certificate = Some(der.to_vec());
        Ok(self)
    }

    /// Returns the certificate (X.509, DER), if there is one.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.certificate.as_deref()
    }
}

/// Returns the base64 text of the first PEM block with this label (RFC 7468).
fn find_pem_text<'a>(pem: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (text, _) = rest.split_once(&format!("-----END {label}-----"))?;
    Some(text)
}

fn decode_pem_text(text: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let der = decode_base64(text).map(Zeroizing::new);
    der.ok_or_else(|| "its PEM text is damaged".to_owned())
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
