//! Sources of content keys.

use super::document_decryptor::DocumentDecryptor;
use super::key_cache::KeyCache;
use super::key_client::KeyClient;
use super::key_derivation::KeyDerivationSecret;
use super::key_document;
use super::key_set::KeySet;
use super::settings::DrmSettings;
use net::Error;
use std::sync::Arc;
use store::Key;

/// Provides the keys of titles.
pub(crate) enum KeySource {
    /// The keys are derived from a secret.
    Secret(Box<KeyDerivationSecret>),
    /// The keys are in files or at a key server.
    Documents {
        client: KeyClient,
        cache: Box<KeyCache>,
        /// Decrypts the encrypted key values of documents; `None` without a private key.
        decryptor: Option<DocumentDecryptor>,
    },
}

impl KeySource {
    /// Returns whether the keys of a title are available without loading them.
    pub(crate) fn has_keys_in_memory(&self, settings: &DrmSettings, title: &Key) -> bool {
        match self {
            KeySource::Secret(_) => true,
            KeySource::Documents { cache, .. } => {
                cache.has_usable_keys(&settings.keys.select_cache_key(title))
            }
        }
    }

    /// Returns the keys of a title. Blocks.
    ///
    /// # Errors
    /// 503 if the key source is unavailable or its document is invalid. The message contains no
    /// keys or credentials.
    pub(crate) fn load_keys(
        &self,
        settings: &DrmSettings,
        title: &Key,
    ) -> Result<Arc<KeySet>, Error> {
        match self {
            KeySource::Secret(secret) => Ok(Arc::new(secret.derive_keys(title))),
            KeySource::Documents {
                client,
                cache,
                decryptor,
            } => {
                let decryptor = decryptor.as_ref();
                let load = || key_document::load_key_document(settings, (client, decryptor), title);
                let keys = cache.get_or_load(&settings.keys.select_cache_key(title), load);
                keys.map_err(|error| error.into_unavailable("keys"))
            }
        }
    }
}
