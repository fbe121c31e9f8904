//! Opens the key sources of a library, and creates the protection policies from the settings.

use super::document_decryptor::DocumentDecryptor;
use super::key_derivation::KeyDerivationSecret;
use super::library_drm::KEY_LOADS_MAX;
use super::rules::DrmRules;
use super::settings::{DrmSettings, KeyLocation};
use super::{DrmPolicy, KeyCache, KeyClient, KeyMetrics, KeySource, LibraryDrm, SourceKeyProvider};
use crate::segment::hls_aes128::SECRET_BYTES_RANGE;
use net::FatalError;
use net::metrics::Metrics;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// Creates the protection of a library, and reads its secrets and credentials; `None` without
/// protection.
///
/// # Errors
/// A [`FatalError`] that names the setting and the file that cannot be used.
pub(crate) fn open_library_drm(
    drm: Option<&DrmRules>,
    metrics: &Metrics,
) -> Result<Option<LibraryDrm>, FatalError> {
    let key_metrics = KeyMetrics::new(metrics);
    let Some(drm) = drm else {
        return Ok(None);
    };
    let open = |settings: &Option<DrmSettings>| {
        let policy = settings.as_ref().map(|drm| open_policy(drm, &key_metrics));
        policy.transpose()
    };
    let rules = drm.rules.iter();
    let rules = rules.map(|(pattern, settings)| Ok((pattern.clone(), open(settings)?)));
    Ok(Some(LibraryDrm {
        rules: rules.collect::<Result<_, FatalError>>()?,
        default_policy: open(&drm.default_settings)?,
    }))
}

fn open_policy(drm: &DrmSettings, metrics: &KeyMetrics) -> Result<DrmPolicy, FatalError> {
    let source = match &drm.keys {
        KeyLocation::Secret(path) => {
            let secret = read_secret("--drm-keys", path)?;
            KeySource::Secret(Box::new(KeyDerivationSecret::new(
                &secret,
                drm.key_granularity,
            )))
        }
        _ => KeySource::Documents {
            client: open_key_client(drm.headers_file.as_deref())?,
            cache: Box::new(KeyCache::new(
                drm.cache,
                drm.stale_if_error,
                metrics.clone(),
            )),
            decryptor: open_decryptor(drm)?,
        },
    };
    let source_keys = drm.source_keys.as_ref();
    let source_keys = source_keys.map(|location| open_source_keys(drm, location, metrics));
    Ok(DrmPolicy {
        settings: drm.clone(),
        source,
        source_keys: source_keys.transpose()?,
        key_loads: Arc::new(Semaphore::new(KEY_LOADS_MAX)),
    })
}

fn open_source_keys(
    drm: &DrmSettings,
    location: &KeyLocation,
    metrics: &KeyMetrics,
) -> Result<SourceKeyProvider, FatalError> {
    // The headers contain credentials for the server of `drm-keys`, so these headers are not sent
    // to another server.
    let has_same_server = location.scheme_and_authority() == drm.keys.scheme_and_authority();
    let headers = drm.headers_file.as_deref().filter(|_| has_same_server);
    Ok(SourceKeyProvider {
        location: location.clone(),
        client: open_key_client(headers)?,
        cache: KeyCache::new(drm.cache, drm.stale_if_error, metrics.clone()),
        decryptor: open_decryptor(drm)?,
    })
}

fn open_decryptor(drm: &DrmSettings) -> Result<Option<DocumentDecryptor>, FatalError> {
    let Some(path) = drm.private_key.as_deref() else {
        return Ok(None);
    };
    let decryptor = parse_pem_file("--drm-private-key", path, DocumentDecryptor::from_pem)?;
    let Some(path) = drm.certificate.as_deref() else {
        return Ok(Some(decryptor));
    };
    let add = |pem: &str| decryptor.with_certificate(pem);
    parse_pem_file("--drm-certificate", path, add).map(Some)
}

/// Parses a file that may contain a private key.
fn parse_pem_file<T>(
    flag: &str,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, FatalError> {
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let parsed = text.and_then(|text| parse(&text).map_err(io::Error::other));
    let what = format!("{flag}: cannot use {}", path.display());
    parsed.map_err(FatalError::cannot(what))
}

fn open_key_client(headers: Option<&Path>) -> Result<KeyClient, FatalError> {
    let Some(path) = headers else {
        return KeyClient::new("").map_err(FatalError::cannot("--drm-headers-file"));
    };
    let what = format!("--drm-headers-file: cannot use {}", path.display());
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let client = text.and_then(|text| KeyClient::new(&text));
    client.map_err(FatalError::cannot(what))
}

/// Reads a secret. Trailing newlines are ignored, as in a shell's `$(cat FILE)`. Other control
/// characters are errors.
///
/// # Errors
/// A [`FatalError`] that names the flag and the file.
pub(crate) fn read_secret(flag: &str, path: &Path) -> Result<Zeroizing<Vec<u8>>, FatalError> {
    let failed = || FatalError::cannot(format!("{flag}: cannot use {}", path.display()));
    let text = Zeroizing::new(std::fs::read(path).map_err(failed())?);
    let ends = text.iter().rev().take_while(|byte| **byte == b'\n').count();
    let secret = text.get(..text.len() - ends).unwrap_or_default();
    if secret.iter().any(u8::is_ascii_control) {
        let what = "the secret contains control characters; it must be one line of text";
        return Err(failed()(io::Error::other(what)));
    }
    if !SECRET_BYTES_RANGE.contains(&secret.len()) {
        let (bytes_min, bytes_max) = SECRET_BYTES_RANGE.into_inner();
        let what = format!(
            "the secret has {} bytes instead of {bytes_min} to {bytes_max}; create one with `openssl rand -hex 32`",
            secret.len()
        );
        return Err(failed()(io::Error::other(what)));
    }
    Ok(Zeroizing::new(secret.to_vec()))
}
