//! Key documents from files and key servers, and the keys that they contain.

use super::content_key::ContentKey;
use super::document_decryptor::DocumentDecryptor;
use super::key_client::{KeyClient, KeyRequest};
use super::key_error::KeyError;
use super::key_set::{KeySet, TitleContentKey};
use super::settings::KeyLocation;
use super::{speke, udrm};
use crate::drm::settings::DrmSettings;
use crate::route;
use media::protection::cpix::{
    CPIX_BYTES_MAX, KeyDocument, KeyDocumentDecryptor, KeyDocumentEntry, decrypt_key_document,
    list_content_keys,
};
use std::io::Read;
use std::path::Path;
use store::Key;
use zeroize::Zeroizing;

/// Reads the key document of a title. Blocks.
///
/// # Errors
/// A message without keys or credentials.
pub(crate) fn load_key_document(
    settings: &DrmSettings,
    (client, decryptor): (&KeyClient, Option<&DocumentDecryptor>),
    title: &Key,
) -> Result<KeySet, KeyError> {
    let text = match &settings.keys {
        KeyLocation::Secret(_) => return Err("a secret is not a document".into()),
        KeyLocation::CpixFile(path) => read_key_file_of_title(path, title)?,
        KeyLocation::CpixUrl(url) => fetch_key_document_text(client, url, title, CPIX_BYTES_MAX)?,
        KeyLocation::Speke(url) => {
            return speke::request_keys(settings, (client, decryptor), (url, title));
        }
        KeyLocation::Udrm(url) => return fetch_udrm_keys(client, url, title),
    };
    let decryptor = decryptor.map(|own| own as &dyn KeyDocumentDecryptor);
    let document = decrypt_key_document(&text, settings.scheme, decryptor);
    let document = document.map_err(|error| error.to_string())?;
    if document.is_signed {
        let title = title.as_str();
        tracing::info!(title, "the signature of the key document is not verified");
    }
    Ok(from_key_document(document))
}

/// Reads the keys of a title's encrypted sources. The returned set has no usage rules. Blocks.
///
/// # Errors
/// A message without keys or credentials.
pub(crate) fn load_source_key_document(
    location: &KeyLocation,
    (client, decryptor): (&KeyClient, Option<&DocumentDecryptor>),
    title: &Key,
) -> Result<KeySet, KeyError> {
    let text = match location {
        KeyLocation::CpixFile(path) => read_key_file_of_title(path, title)?,
        KeyLocation::CpixUrl(url) => fetch_key_document_text(client, url, title, CPIX_BYTES_MAX)?,
        KeyLocation::Udrm(url) => return fetch_udrm_keys(client, url, title),
        KeyLocation::Secret(_) | KeyLocation::Speke(_) => {
            return Err("the source has no keys of other key ids".into());
        }
    };
    let decryptor = decryptor.map(|own| own as &dyn KeyDocumentDecryptor);
    let keys = list_content_keys(&text, decryptor).map_err(|error| error.to_string())?;
    Ok(KeySet {
        keys: keys.into_iter().map(from_document_entry).collect(),
        ..KeySet::default()
    })
}

/// Converts a parsed document to a key set.
pub(crate) fn from_key_document(document: KeyDocument) -> KeySet {
    KeySet {
        keys: document.keys.into_iter().map(from_document_entry).collect(),
        rules: document.rules,
        is_served: false,
    }
}

fn from_document_entry(entry: KeyDocumentEntry) -> TitleContentKey {
    TitleContentKey {
        key_id: entry.key_id,
        key: ContentKey::new(*entry.key),
        explicit_iv: entry.explicit_iv,
        hdcp_level: entry.hdcp_level,
        systems: entry.systems,
    }
}

/// Reads a file whose path may contain `{title}`.
fn read_key_file_of_title(path: &str, title: &Key) -> Result<Zeroizing<String>, KeyError> {
    read_document_file(Path::new(&path.replace("{title}", title.as_str())))
}

fn fetch_udrm_keys(client: &KeyClient, url: &str, title: &Key) -> Result<KeySet, KeyError> {
    let text = fetch_key_document_text(client, url, title, udrm::RESPONSE_BYTES_MAX)?;
    Ok(udrm::parse_udrm_response(&text)?)
}

fn read_document_file(path: &Path) -> Result<Zeroizing<String>, KeyError> {
    let mut text = Zeroizing::new(String::new());
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| {
        file.take(CPIX_BYTES_MAX as u64 + 1)
            .read_to_string(&mut text)
    });
    let failed = |error| {
        let message = "cannot read the key document";
        let cause = format!("{message} {}: {error}", path.display());
        KeyError::with_cause(message, cause)
    };
    read.map(|_| text).map_err(failed)
}

fn fetch_key_document_text(
    client: &KeyClient,
    url: &str,
    title: &Key,
    response_bytes_max: usize,
) -> Result<Zeroizing<String>, KeyError> {
    let response = client.send_key_request(KeyRequest {
        url: expand_url(url, title)?,
        body: None,
        headers: Vec::new(),
        response_bytes_max,
    })?;
    Ok(decode_utf8_body(&response.body)?)
}

pub(super) fn decode_utf8_body(body: &[u8]) -> Result<Zeroizing<String>, String> {
    let text = std::str::from_utf8(body);
    text.map(|text| Zeroizing::new(text.to_owned()))
        .map_err(|_| "the response is not UTF-8".to_owned())
}

/// Replaces `{title}` in a URL with the title's path in its canonical percent-encoding.
pub(super) fn expand_url(url: &str, title: &Key) -> Result<http::Uri, String> {
    let url = url.replace("{title}", &route::escape_strictly(title));
    url.parse().map_err(|error| format!("invalid URL: {error}"))
}
