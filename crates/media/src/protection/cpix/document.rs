//! Parsing of CPIX documents into keys, rules and signaling.

use super::key_decryption::{self, DocumentKeys, KeyDocumentDecryptor};
use super::{signaling, usage};
use crate::error::{Error, ErrorKind, Result};
use crate::protection::base64_text::decode_base64;
use crate::protection::{
    HdcpLevel, KeyId, ProtectionScheme, SystemSignaling, UsageRule, format_key_id, parse_key_id,
};
use crate::xml::{self, XmlElement};
use std::fmt;
use zeroize::Zeroizing;

/// Maximum size of a key document, in bytes.
pub const CPIX_BYTES_MAX: usize = 1 << 20;
/// Maximum number of keys in a document, and maximum number of usage rules.
const ENTRIES_MAX: usize = 64;

/// The keys of a title.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyDocument {
    /// The keys. There is at least one key.
    pub keys: Vec<KeyDocumentEntry>,
    /// The usage rules. They are empty only if there is a single key, which then applies to all
    /// tracks.
    pub rules: Vec<UsageRule>,
    /// Whether the document has signatures. They are not verified.
    pub is_signed: bool,
}

/// One content key with its signaling.
#[derive(Clone, PartialEq)]
pub struct KeyDocumentEntry {
    /// Key id.
    pub key_id: KeyId,
    /// The key. The memory is wiped when the key is dropped.
    pub key: Zeroizing<[u8; 16]>,
    /// Whether the key is encrypted in the document.
    pub is_encrypted: bool,
    /// Constant IV of `cbcs`.
    pub explicit_iv: Option<[u8; 16]>,
    /// Output protection (HDCP) that the key requires (CPIX 2.4).
    pub hdcp_level: Option<HdcpLevel>,
    /// DRM systems that the document names for the key.
    pub systems: Vec<SystemSignaling>,
}

impl fmt::Debug for KeyDocumentEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key_id = format_key_id(&self.key_id);
        f.debug_struct("KeyDocumentEntry")
            .field("key_id", &key_id)
            .finish_non_exhaustive()
    }
}

/// Parses a document with plain key values. If a key declares a scheme, it must be `scheme`.
///
/// # Errors
/// The errors of [`decrypt_key_document`], and `Unsupported` for encrypted keys.
pub fn parse_key_document(text: &str, scheme: ProtectionScheme) -> Result<KeyDocument> {
    decrypt_key_document(text, scheme, None)
}

/// Parses a document whose key values may be encrypted.
///
/// # Errors
/// `TooLarge` for more than [`CPIX_BYTES_MAX`] bytes or too many entries; `Unsupported` for keys
/// that `decryptor` cannot decrypt, keys of another scheme, other CPIX versions, key hierarchies,
/// key rotation, and rules that cannot be evaluated; `Empty` if there is no key; `Malformed`
/// otherwise.
pub fn decrypt_key_document(
    text: &str,
    scheme: ProtectionScheme,
    decryptor: Option<&dyn KeyDocumentDecryptor>,
) -> Result<KeyDocument> {
    parse_and_wipe(text, |root| read_document(root, scheme, decryptor))
}

/// Parses only the keys of a document. The caller finds a key by its key id, so the keys may be for
/// any scheme and need no usage rules.
///
/// # Errors
/// The errors of [`decrypt_key_document`], except the errors for rules and key periods.
pub fn list_content_keys(
    text: &str,
    decryptor: Option<&dyn KeyDocumentDecryptor>,
) -> Result<Vec<KeyDocumentEntry>> {
    parse_and_wipe(text, |root| {
        check_version(root)?;
        read_keys(root, None, decryptor)
    })
}

/// Parses the text, calls `read` with the XML tree, and then wipes the tree's text.
fn parse_and_wipe<T>(text: &str, read: impl FnOnce(&XmlElement) -> Result<T>) -> Result<T> {
    if text.len() > CPIX_BYTES_MAX {
        let message = format!("a key document of more than {CPIX_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let mut root = xml::parse_xml_document(text)?;
    let found = read(&root);
    wipe_text(&mut root);
    found
}

/// Wipes the text of an XML tree, because the tree contains the keys as text.
fn wipe_text(element: &mut XmlElement) {
    drop(Zeroizing::new(std::mem::take(&mut element.text)));
    element.children.iter_mut().for_each(wipe_text);
}

/// Decrypts the values of one document. The document key and the MAC key are decrypted when they
/// are first needed.
struct ContentKeyDecryptor<'a> {
    root: &'a XmlElement,
    decryptor: Option<&'a dyn KeyDocumentDecryptor>,
    keys: Option<DocumentKeys>,
}

fn read_document(
    root: &XmlElement,
    scheme: ProtectionScheme,
    decryptor: Option<&dyn KeyDocumentDecryptor>,
) -> Result<KeyDocument> {
    check_version(root)?;
    let periods = find_list_elements(root, "ContentKeyPeriodList", "ContentKeyPeriod")?;
    if periods.len() > 1 {
        let message = "the keys change during the film; use one key period";
        return Err(Error::unsupported(message));
    }
    let mut keys = read_keys(root, Some(scheme), decryptor)?;
    for system in find_list_elements(root, "DRMSystemList", "DRMSystem")? {
        let key_id = require_key_id(system)?;
        let key = keys.iter_mut().find(|key| key.key_id == key_id);
        // Key servers may also describe keys that are not in the document. Such descriptions are
        // ignored.
        if let Some(key) = key {
            key.systems.push(signaling::read_system(system)?);
        }
    }
    let rules = find_list_elements(root, "ContentKeyUsageRuleList", "ContentKeyUsageRule")?;
    let rules: Vec<UsageRule> = rules
        .into_iter()
        .map(usage::read_rule)
        .collect::<Result<_>>()?;
    check_rules(&keys, &rules)?;
    Ok(KeyDocument {
        keys,
        rules,
        is_signed: root.first_child("Signature").is_some(),
    })
}

fn check_version(root: &XmlElement) -> Result<()> {
    if root.name != "CPIX" {
        let message = format!("not a CPIX document: it starts with {}", root.name);
        return Err(Error::malformed(message));
    }
    if let Some(version) = root.attribute("version")
        && !version.starts_with("2.")
    {
        let message = format!("CPIX version {version} is not supported; use 2.3 or 2.4");
        return Err(Error::unsupported(message));
    }
    Ok(())
}

fn read_keys(
    root: &XmlElement,
    scheme: Option<ProtectionScheme>,
    decryptor: Option<&dyn KeyDocumentDecryptor>,
) -> Result<Vec<KeyDocumentEntry>> {
    let mut keys = Vec::new();
    let mut values = ContentKeyDecryptor {
        root,
        decryptor,
        keys: None,
    };
    for element in find_list_elements(root, "ContentKeyList", "ContentKey")? {
        let key = read_content_key(element, scheme, &mut values)?;
        if keys
            .iter()
            .any(|known: &KeyDocumentEntry| known.key_id == key.key_id)
        {
            let message = format!("the key {} occurs twice", format_key_id(&key.key_id));
            return Err(Error::malformed(message));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(Error::new(
            ErrorKind::Empty,
            "the key document contains no key",
        ));
    }
    Ok(keys)
}

fn check_rules(keys: &[KeyDocumentEntry], rules: &[UsageRule]) -> Result<()> {
    if rules.is_empty() && keys.len() > 1 {
        let message = format!(
            "{} keys without usage rules; add a rule for each",
            keys.len()
        );
        return Err(Error::malformed(message));
    }
    let unknown = |rule: &&UsageRule| keys.iter().all(|key| key.key_id != rule.key_id);
    match rules.iter().find(unknown) {
        None => Ok(()),
        Some(rule) => {
            let id = format_key_id(&rule.key_id);
            Err(Error::malformed(format!(
                "a usage rule names the unknown key {id}"
            )))
        }
    }
}

/// Returns the entries of a list.
fn find_list_elements<'a>(
    root: &'a XmlElement,
    list: &'static str,
    entry: &'static str,
) -> Result<Vec<&'a XmlElement>> {
    // `DRMSystemList` has one entry for each pair of key and DRM system, so more entries are
    // allowed.
    let most = if list == "DRMSystemList" {
        ENTRIES_MAX * 8
    } else {
        ENTRIES_MAX
    };
    let lists = root.children_named(list);
    let entries: Vec<_> = lists
        .flat_map(|list| list.children_named(entry))
        .take(most + 1)
        .collect();
    if entries.len() > most {
        let message = format!("more than {most} entries in {list}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(entries)
}

pub(super) fn require_key_id(element: &XmlElement) -> Result<KeyId> {
    let key_id = element.attribute("kid").and_then(parse_key_id);
    let message = || Error::malformed(format!("{}@kid is not a UUID", element.name));
    key_id.ok_or_else(message)
}

fn read_content_key(
    element: &XmlElement,
    scheme: Option<ProtectionScheme>,
    values: &mut ContentKeyDecryptor<'_>,
) -> Result<KeyDocumentEntry> {
    let key_id = require_key_id(element)?;
    let named = |what: &str| format!("the key {} {what}", format_key_id(&key_id));
    if element.attribute("dependsOnKey").is_some() {
        return Err(Error::unsupported(named("depends on another key")));
    }
    if let (Some(declared), Some(scheme)) = (element.attribute("commonEncryptionScheme"), scheme)
        && declared != scheme.name()
    {
        let other: String = declared.chars().take(8).collect();
        let what = format!("is one for {other:?}; set drm-scheme accordingly");
        return Err(Error::unsupported(named(&what)));
    }
    let iv = element.attribute("explicitIV").map(|text| {
        let bytes = decode_base64(text).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| Error::malformed(named("has an explicitIV that is not 16 bytes")))
    });
    let (key, is_encrypted) = values.read_secret(element, &named)?;
    Ok(KeyDocumentEntry {
        key_id,
        key,
        is_encrypted,
        explicit_iv: iv.transpose()?,
        hdcp_level: read_hdcp_level(element, &named)?,
        systems: Vec::new(),
    })
}

fn read_hdcp_level(
    element: &XmlElement,
    named: &dyn Fn(&str) -> String,
) -> Result<Option<HdcpLevel>> {
    let data = element.first_child("HDCPData");
    let Some(text) = data.and_then(|data| data.attribute("HLSHDCPLevel")) else {
        return Ok(None);
    };
    let level = HdcpLevel::from_name(text);
    let unknown = || {
        Error::malformed(named(
            "has an HLSHDCPLevel other than NONE, TYPE-0 and TYPE-1",
        ))
    };
    level.map(Some).ok_or_else(unknown)
}

impl ContentKeyDecryptor<'_> {
    /// Returns the key, and whether it is encrypted in the document.
    fn read_secret(
        &mut self,
        element: &XmlElement,
        named: &dyn Fn(&str) -> String,
    ) -> Result<(Zeroizing<[u8; 16]>, bool)> {
        let secret = element
            .first_child("Data")
            .and_then(|data| data.first_child("Secret"));
        let secret = secret.ok_or_else(|| Error::malformed(named("has no value")))?;
        let is_encrypted = secret.first_child("EncryptedValue").is_some();
        let bytes = match is_encrypted {
            true => self.decrypt_key_value(secret, named)?,
            false => {
                let text = secret.first_child("PlainValue");
                let text = text.map(|value| value.text.as_str());
                Zeroizing::new(text.and_then(decode_base64).unwrap_or_default())
            }
        };
        match bytes[..].try_into() {
            Ok(key) => Ok((Zeroizing::new(key), is_encrypted)),
            Err(_) => Err(Error::malformed(named("has a value that is not 16 bytes"))),
        }
    }

    fn decrypt_key_value(
        &mut self,
        secret: &XmlElement,
        named: &dyn Fn(&str) -> String,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let Some(decryptor) = self.decryptor else {
            let message = named("is encrypted; set drm-private-key to the recipient's private key");
            return Err(Error::unsupported(message));
        };
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => key_decryption::find_document_keys(self.root, decryptor)?,
        };
        let keys = self.keys.insert(keys);
        let wrong = || Error::malformed(named("has an encrypted value with a wrong MAC"));
        key_decryption::decrypt_secret(secret, decryptor, keys)?.ok_or_else(wrong)
    }
}
