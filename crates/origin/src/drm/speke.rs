//! Requests keys from a SPEKE key server, as CPIX documents over HTTP POST. In the terms of SPEKE,
//! Headwater is the encryptor, which chooses the key ids.

use super::document_decryptor::DocumentDecryptor;
use super::key_client::{KeyClient, KeyRequest};
use super::key_derivation::track_classes;
use super::key_document::{decode_utf8_body, expand_url, from_key_document};
use super::key_error::KeyError;
use super::key_set::KeySet;
use super::settings::DrmSettings;
use aws_lc_rs::digest;
use media::protection::cpix::{
    CPIX_BYTES_MAX, CpixRequest, CpixVersion, KeyDocument, KeyDocumentDecryptor, RequestedKey,
    decrypt_key_document,
};
use media::protection::{UsageRule, format_key_id};
use store::Key;
use zeroize::Zeroizing;

const VERSION_HEADER: &str = "x-speke-version";

/// Returns the version of SPEKE that uses this version of CPIX.
fn speke_version_for_cpix(cpix: CpixVersion) -> &'static str {
    match cpix {
        CpixVersion::V2_3 => "2.0",
        CpixVersion::V2_4 => "2.1",
    }
}

/// Requests the keys of a title. If there is a certificate, requests encrypted key values. Blocks.
///
/// # Errors
/// A message that contains the key server's reason, if the server gives a reason.
pub(crate) fn request_keys(
    settings: &DrmSettings,
    (client, decryptor): (&KeyClient, Option<&DocumentDecryptor>),
    (url, title): (&str, &Key),
) -> Result<KeySet, KeyError> {
    let keys = choose_key_ids(settings, title);
    let request = CpixRequest {
        version: settings.cpix_version,
        content_id: title.as_str(),
        scheme: settings.scheme,
        keys: &keys,
        systems: &settings.systems,
        certificate: decryptor.and_then(DocumentDecryptor::certificate),
    };
    let text = post_request(client, expand_url(url, title)?, &request)?;
    let decryptor = decryptor.map(|own| own as &dyn KeyDocumentDecryptor);
    let document = decrypt_key_document(&text, settings.scheme, decryptor);
    let document = document.map_err(|error| error.to_string())?;
    check_requested_keys(&document, &request)?;
    // The usage rules of the request replace the usage rules of the response. Keys that were not
    // requested are therefore not used.
    let mut found = from_key_document(document);
    found.rules = keys.into_iter().map(|key| key.rule).collect();
    Ok(found)
}

/// Sends a request, and returns the text of the response.
fn post_request(
    client: &KeyClient,
    url: http::Uri,
    request: &CpixRequest<'_>,
) -> Result<Zeroizing<String>, KeyError> {
    let version = speke_version_for_cpix(request.version);
    let response = client.send_key_request(KeyRequest {
        url,
        body: Some(request.to_xml()),
        headers: vec![
            ("content-type", "application/xml"),
            (VERSION_HEADER, version),
        ],
        response_bytes_max: CPIX_BYTES_MAX,
    })?;
    let declared = response.headers.get(VERSION_HEADER);
    if declared.is_none_or(|declared| declared.as_bytes() != version.as_bytes()) {
        let message = format!("the response does not declare {VERSION_HEADER}: {version}");
        return Err(message.into());
    }
    Ok(decode_utf8_body(&response.body)?)
}

/// Checks that the response contains the requested keys. If the request contained a certificate,
/// also checks that these keys are encrypted.
fn check_requested_keys(document: &KeyDocument, request: &CpixRequest<'_>) -> Result<(), String> {
    for key in request.keys {
        let id = &key.rule.key_id;
        let found = document.keys.iter().find(|own| own.key_id == *id);
        let id = format_key_id(id);
        match found {
            None => return Err(format!("the response lacks the requested key {id}")),
            Some(found) if request.certificate.is_some() && !found.is_encrypted => {
                return Err(format!(
                    "the value of the key {id} is not encrypted, although the request contains a certificate"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Chooses key ids and IVs that depend only on the title and the class of tracks, so that all
/// origins request the same keys.
fn choose_key_ids(settings: &DrmSettings, title: &Key) -> Vec<RequestedKey> {
    let classes = track_classes(settings.key_granularity).into_iter();
    classes
        .map(|(class, media)| RequestedKey {
            explicit_iv: hash_to_uuid("headwater speke iv\n", title, class),
            rule: UsageRule {
                key_id: hash_to_uuid("headwater speke key id\n", title, class),
                media,
                bitrates: Vec::new(),
            },
            track_type: class,
        })
        .collect()
}

fn hash_to_uuid(label: &str, title: &Key, class: &str) -> [u8; 16] {
    let words = [label, title.as_str(), "\n", class].concat();
    let hash = digest::digest(&digest::SHA256, words.as_bytes());
    let mut bytes: [u8; 16] =
        std::array::from_fn(|at| hash.as_ref().get(at).copied().unwrap_or_default());
    // Sets UUID version 8 and the variant of RFC 9562, because key servers may check the format.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
