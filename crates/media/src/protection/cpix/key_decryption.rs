//! Decryption of key values (CPIX 2.3, 4.4; RFC 6030, 6.1) with the document key and the MAC key of
//! a recipient.

use crate::error::{Error, ErrorKind, Result};
use crate::protection::base64_text::decode_base64;
use crate::xml::XmlElement;
use zeroize::Zeroizing;

/// Maximum number of recipients of a document.
const RECIPIENTS_MAX: usize = 16;
/// Length of a document key for AES-256, in bytes.
const DOCUMENT_KEY_BYTES: usize = 32;
/// Maximum length of an encrypted value, in bytes.
const CIPHER_BYTES_MAX: usize = 2048;

const RSA_OAEP: &str = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p";
const AES_256_CBC: &str = "http://www.w3.org/2001/04/xmlenc#aes256-cbc";
const HMAC_SHA512: &str = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512";

/// Decryption with the private key of a recipient, and with the keys of a document. The caller
/// implements this trait.
pub trait KeyDocumentDecryptor {
    /// Decrypts a value with RSA-OAEP and SHA-1. Returns `None` if the value is for another
    /// recipient.
    fn decrypt_for_recipient(&self, value: &[u8]) -> Option<Zeroizing<Vec<u8>>>;

    /// Decrypts a value with AES-256-CBC and PKCS#7 padding. `value` starts with the IV. `mac` is
    /// the HMAC-SHA512 of `value`, and is verified first. Returns `None` if `mac` is wrong.
    fn decrypt_value(
        &self,
        keys: &DocumentKeys,
        value: &[u8],
        mac: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>>;
}

/// The keys that encrypt and authenticate the values of a document. The memory of the keys is wiped
/// when they are dropped.
#[derive(Clone)]
pub struct DocumentKeys {
    /// AES-256 key that encrypts the values.
    pub document_key: Zeroizing<Vec<u8>>,
    /// Key for the HMAC-SHA512 of the values.
    pub mac_key: Zeroizing<Vec<u8>>,
}

/// Finds the document's keys for the recipient whose private key `decryptor` has.
///
/// # Errors
/// `Unsupported` if the document has no delivery data for this recipient. Also `Unsupported` if the
/// delivery data uses algorithms other than AES-256-CBC, RSA-OAEP and HMAC-SHA512. `TooLarge` if
/// there are too many recipients. `Malformed` if an element is missing or invalid.
pub(super) fn find_document_keys(
    root: &XmlElement,
    decryptor: &dyn KeyDocumentDecryptor,
) -> Result<DocumentKeys> {
    let lists = root.children_named("DeliveryDataList");
    let recipients = lists.flat_map(|list| list.children_named("DeliveryData"));
    for (n, recipient) in recipients.enumerate() {
        if n >= RECIPIENTS_MAX {
            let message = format!("more than {RECIPIENTS_MAX} recipients in DeliveryDataList");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        if let Some(keys) = read_recipient(recipient, decryptor)? {
            return Ok(keys);
        }
    }
    Err(Error::unsupported(
        "no delivery data of the key document is for the private key of drm-private-key",
    ))
}

fn read_recipient(
    recipient: &XmlElement,
    decryptor: &dyn KeyDocumentDecryptor,
) -> Result<Option<DocumentKeys>> {
    let document = require_child_element(recipient, "DocumentKey")?;
    require_algorithm(document, AES_256_CBC)?;
    let secret = document.first_child("Data");
    let secret = secret.and_then(|data| data.first_child("Secret"));
    let value = secret.and_then(|secret| secret.first_child("EncryptedValue"));
    let value = value.ok_or_else(|| Error::malformed("DocumentKey has no encrypted value"))?;
    let Some(document_key) = decryptor.decrypt_for_recipient(&read_cipher_value(value, RSA_OAEP)?)
    else {
        return Ok(None);
    };
    let mac = require_child_element(recipient, "MACMethod")?;
    require_algorithm(mac, HMAC_SHA512)?;
    // CPIX calls the element Key, and RFC 6030 calls it MACKey.
    let mac_key = mac.first_child("Key").or_else(|| mac.first_child("MACKey"));
    let mac_key = mac_key.ok_or_else(|| Error::malformed("MACMethod has no key"))?;
    let mac_key = decryptor.decrypt_for_recipient(&read_cipher_value(mac_key, RSA_OAEP)?);
    match mac_key {
        Some(mac_key) if document_key.len() == DOCUMENT_KEY_BYTES && !mac_key.is_empty() => {
            Ok(Some(DocumentKeys {
                document_key,
                mac_key,
            }))
        }
        _ => Err(Error::malformed(
            "the document key or the MAC key of the key document is damaged",
        )),
    }
}

/// Decrypts the value of a `Secret` element. Returns `None` if the MAC of the value is wrong.
///
/// # Errors
/// `Malformed` if an element is missing or invalid. `Unsupported` if the algorithm is not
/// AES-256-CBC.
pub(super) fn decrypt_secret(
    secret: &XmlElement,
    decryptor: &dyn KeyDocumentDecryptor,
    keys: &DocumentKeys,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let value = read_cipher_value(
        require_child_element(secret, "EncryptedValue")?,
        AES_256_CBC,
    )?;
    let mac = decode_base64(&require_child_element(secret, "ValueMAC")?.text);
    let mac = mac.ok_or_else(|| Error::malformed("ValueMAC is not base64"))?;
    Ok(decryptor.decrypt_value(keys, &value, &mac))
}

fn read_cipher_value(element: &XmlElement, algorithm: &str) -> Result<Vec<u8>> {
    require_algorithm(
        require_child_element(element, "EncryptionMethod")?,
        algorithm,
    )?;
    let data = require_child_element(element, "CipherData")?;
    let bytes = decode_base64(&require_child_element(data, "CipherValue")?.text);
    let short = bytes.filter(|bytes| bytes.len() <= CIPHER_BYTES_MAX);
    short.ok_or_else(|| Error::malformed("CipherValue is not base64, or too long"))
}

fn require_child_element<'a>(
    element: &'a XmlElement,
    name: &'static str,
) -> Result<&'a XmlElement> {
    let missing = || Error::malformed(format!("{} has no {name}", element.name));
    element.first_child(name).ok_or_else(missing)
}

fn require_algorithm(element: &XmlElement, algorithm: &str) -> Result<()> {
    let found = element.attribute("Algorithm").unwrap_or_default();
    if found == algorithm {
        return Ok(());
    }
    let found: String = found.chars().take(80).collect();
    let name = &element.name;
    Err(Error::unsupported(format!(
        "{name} of the key document uses {found:?}; only {algorithm} is supported"
    )))
}
