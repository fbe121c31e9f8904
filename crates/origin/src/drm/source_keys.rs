//! Keys of sources that are already encrypted. Only the key id selects a key, because sources have
//! no usage rules.

use super::document_decryptor::DocumentDecryptor;
use super::key_cache::KeyCache;
use super::key_client::KeyClient;
use super::key_document;
use super::key_set::{KeySet, TitleContentKey};
use super::settings::KeyLocation;
use media::protection::SourceProtection;
use net::Error;
use std::sync::Arc;
use store::Key;

/// Provides the keys with which sources are decrypted.
pub(crate) struct SourceKeyProvider {
    pub(crate) location: KeyLocation,
    pub(crate) client: KeyClient,
    pub(crate) cache: KeyCache,
    /// Decrypts the encrypted key values of documents; `None` without a private key.
    pub(crate) decryptor: Option<DocumentDecryptor>,
}

impl SourceKeyProvider {
    /// Returns whether the keys for the sources of a title are available without loading them.
    pub(crate) fn has_cached_keys(&self, title: &Key) -> bool {
        self.cache
            .has_usable_keys(&self.location.select_cache_key(title))
    }

    /// Returns the keys for the sources of a title. Blocks.
    ///
    /// # Errors
    /// 503 if the keys are unavailable. The message contains no keys or credentials. Callers must
    /// not ignore the error, because the encryption of the title would otherwise change whenever
    /// the key server fails.
    pub(crate) fn load_keys(&self, title: &Key) -> Result<Arc<KeySet>, Error> {
        let access = (&self.client, self.decryptor.as_ref());
        let load = || key_document::load_source_key_document(&self.location, access, title);
        let cached = self.location.select_cache_key(title);
        let keys = self.cache.get_or_load(&cached, load);
        keys.map_err(|error| error.into_unavailable("keys: source keys"))
    }
}

/// Returns the key of an encrypted source; `None` if the set has no key with the source's key id.
pub(crate) fn find_source_key<'k>(
    keys: &'k KeySet,
    source: &SourceProtection,
) -> Option<&'k TitleContentKey> {
    let key_id = &source.entry.protection.key_id;
    keys.keys.iter().find(|key| key.key_id == *key_id)
}
