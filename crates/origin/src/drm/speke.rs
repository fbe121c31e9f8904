//! Keys from a SPEKE key server: CPIX over HTTP POST. Headwater is the encryptor, and chooses
//! the key ids.

use super::key_client::{KeyClient, KeyRequest};
use super::key_document::{decode_body, expand_url, from_document};
use super::key_set::KeySet;
use super::secret_keys::track_classes;
use super::settings::DrmSettings;
use aws_lc_rs::digest;
use media::protection::cpix::{
    CPIX_BYTES_MAX, CpixVersion, RequestedKey, parse_key_document, write_key_request,
};
use media::protection::{UsageRule, format_key_id};
use store::Key;

const VERSION_HEADER: &str = "x-speke-version";

/// Returns the version of SPEKE that uses a version of CPIX.
fn speke_version(cpix: CpixVersion) -> &'static str {
    match cpix {
        CpixVersion::V2_3 => "2.0",
        CpixVersion::V2_4 => "2.1",
    }
}

/// Requests the keys of a title. Blocks.
///
/// # Errors
/// A message with the key server's reason, if it has one.
pub(crate) fn request_keys(
    settings: &DrmSettings,
    client: &KeyClient,
    (url, title): (&str, &Key),
) -> Result<KeySet, String> {
    let keys = choose_keys(settings, title);
    let (cpix, version) = (settings.cpix_version, speke_version(settings.cpix_version));
    let id = title.as_str();
    let body = write_key_request(cpix, id, settings.scheme, &keys, &settings.systems);
    let response = client.send(KeyRequest {
        url: expand_url(url, title)?,
        body: Some(body),
        headers: vec![
            ("content-type", "application/xml"),
            (VERSION_HEADER, version),
        ],
        response_bytes_max: CPIX_BYTES_MAX,
    })?;
    let declared = response.headers.get(VERSION_HEADER);
    if declared.is_none_or(|declared| declared.as_bytes() != version.as_bytes()) {
        return Err(format!(
            "the response does not declare {VERSION_HEADER}: {version}"
        ));
    }
    let document = parse_key_document(&decode_body(&response.body)?, settings.scheme);
    let mut found = from_document(document.map_err(|error| error.to_string())?);
    let is_missing =
        |key: &&RequestedKey| found.keys.iter().all(|own| own.key_id != key.rule.key_id);
    if let Some(key) = keys.iter().find(is_missing) {
        let id = format_key_id(&key.rule.key_id);
        return Err(format!("the response lacks the requested key {id}"));
    }
    // The rules are ours. A key that was not requested is not used.
    found.rules = keys.into_iter().map(|key| key.rule).collect();
    Ok(found)
}

/// Chooses key ids and IVs that depend only on the title and the type of track, so that all origins
/// request the same keys.
fn choose_keys(settings: &DrmSettings, title: &Key) -> Vec<RequestedKey> {
    let classes = track_classes(settings.key_granularity).into_iter();
    classes
        .map(|(class, media)| RequestedKey {
            explicit_iv: hash_words("headwater speke iv\n", title, class),
            rule: UsageRule {
                key_id: hash_words("headwater speke key id\n", title, class),
                media,
                bitrates: Vec::new(),
            },
            track_type: class,
        })
        .collect()
}

fn hash_words(label: &str, title: &Key, class: &str) -> [u8; 16] {
    let words = [label, title.as_str(), "\n", class].concat();
    let hash = digest::digest(&digest::SHA256, words.as_bytes());
    let mut bytes: [u8; 16] =
        std::array::from_fn(|at| hash.as_ref().get(at).copied().unwrap_or_default());
    // Version 8 and the variant of RFC 9562: key servers may check the form.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
