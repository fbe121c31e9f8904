//! Sources of content keys.

use super::key_set::KeySet;
use super::secret_keys::SecretKeys;
use net::Error;
use store::Key;

/// Provides the keys of titles.
pub(crate) enum KeySource {
    /// Derived from a secret.
    Secret(SecretKeys),
}

impl KeySource {
    /// Returns the keys of a title. Blocks.
    pub(crate) fn load_keys(&self, title: &Key) -> Result<KeySet, Error> {
        match self {
            KeySource::Secret(secret) => Ok(secret.derive(title)),
        }
    }
}
