//! The protection of a library. The path of a title selects the policy of the title.

use super::key_source::KeySource;
use super::path_pattern::PathPattern;
use super::settings::DrmSettings;
use super::source_keys::SourceKeyProvider;
use crate::error;
use media::error::ErrorKind;
use net::Error;
use std::sync::Arc;
use store::Key;
use tokio::sync::Semaphore;

/// Protection of all titles with the same settings.
pub(crate) struct DrmPolicy {
    pub(crate) settings: DrmSettings,
    pub(crate) source: KeySource,
    /// Keys with which encrypted films are decrypted, so that they can be encrypted again. `None`
    /// if such films are served as they are.
    pub(crate) source_keys: Option<SourceKeyProvider>,
    /// Permits that limit how many titles wait for a key server at the same time.
    pub(crate) key_loads: Arc<Semaphore>,
}

/// Number of permits in [`DrmPolicy::key_loads`]. Each load of keys blocks a thread.
pub(crate) const KEY_LOADS_MAX: usize = 32;

impl DrmPolicy {
    /// Returns whether loading the keys of a title may wait for a key server.
    pub(crate) fn may_wait_for_keys(&self, title: &Key) -> bool {
        let source_keys = self.source_keys.as_ref();
        !self.source.has_keys_in_memory(&self.settings, title)
            || source_keys.is_some_and(|keys| !keys.has_cached_keys(title))
    }
}

/// Protection of all titles of a library.
pub(crate) struct LibraryDrm {
    /// The first rule that matches a path applies. If the rule has no policy, the titles stay
    /// unencrypted.
    pub(crate) rules: Vec<(PathPattern, Option<DrmPolicy>)>,
    /// Policy for paths that no rule matches.
    pub(crate) default_policy: Option<DrmPolicy>,
}

impl LibraryDrm {
    /// Returns the policy for a path; `None` if titles at this path stay unencrypted.
    pub(crate) fn policy_of(&self, path: &Key) -> Option<&DrmPolicy> {
        let mut rules = self.rules.iter();
        match rules.find(|(pattern, _)| pattern.matches(path)) {
            Some((_, policy)) => policy.as_ref(),
            None => self.default_policy.as_ref(),
        }
    }

    /// Checks that an unencrypted title uses no library file whose path is protected. For example,
    /// a server manifest in an unprotected folder may refer to a film in a protected folder.
    ///
    /// # Errors
    /// 415 if the title uses such a file. The message names the file.
    pub(crate) fn refuse_references_to_protected<'a>(
        &self,
        title: &Key,
        mut files: impl Iterator<Item = &'a Key>,
    ) -> Result<(), Error> {
        match files.find(|file| self.policy_of(file).is_some()) {
            None => Ok(()),
            Some(file) => {
                let what = format!(
                    "{file} is protected by the rule for its path, but the title that names it is not; protect both"
                );
                let bad = media::Error::new(ErrorKind::Unsupported, what);
                Err(error::from_media(title.as_str(), &bad))
            }
        }
    }
}
