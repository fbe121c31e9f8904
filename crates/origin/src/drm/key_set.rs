//! The content keys of one title.

use super::content_key::{ContentKey, KEY_BYTES};
use media::protection::{
    HdcpLevel, KeyId, RuleTrackProperties, SystemSignaling, UsageRule, format_key_id,
};

/// The keys of a title, and the tracks that each key encrypts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KeySet {
    pub(crate) keys: Vec<TitleContentKey>,
    /// The rules that map keys to tracks. Without rules, a single key encrypts every track.
    pub(crate) rules: Vec<UsageRule>,
    /// Whether this server may give the keys to players (ClearKey).
    pub(crate) is_served: bool,
}

/// One content key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TitleContentKey {
    pub(crate) key_id: KeyId,
    pub(crate) key: ContentKey,
    /// The constant IV of `cbcs`, if the key source defines the IV.
    pub(crate) explicit_iv: Option<[u8; KEY_BYTES]>,
    /// HDCP level that the key source requires for video outputs.
    pub(crate) hdcp_level: Option<HdcpLevel>,
    /// DRM signaling that the key source defines. The settings define the signaling of all other
    /// systems.
    pub(crate) systems: Vec<SystemSignaling>,
}

impl KeySet {
    /// Returns the key of a track; `None` if no rule applies to the track.
    ///
    /// # Errors
    /// A message if several keys are possible, or if the key that a rule names is unknown.
    pub(crate) fn key_for_track(
        &self,
        track: &RuleTrackProperties,
    ) -> Result<Option<&TitleContentKey>, String> {
        if self.rules.is_empty() {
            return match &self.keys[..] {
                [only] => Ok(Some(only)),
                keys => Err(format!("{} keys have no usage rules", keys.len())),
            };
        }
        let applying = self.rules.iter().filter(|rule| rule.applies_to(track));
        let mut ids: Vec<&KeyId> = applying.map(|rule| &rule.key_id).collect();
        ids.sort();
        ids.dedup();
        match &ids[..] {
            [] => Ok(None),
            [id] => {
                let found = self.keys.iter().find(|key| key.key_id == **id);
                let missing = || format!("a rule names the unknown key {}", format_key_id(id));
                found.map(Some).ok_or_else(missing)
            }
            [first, second, ..] => Err(format!(
                "the keys {} and {} are mapped to one track",
                format_key_id(first),
                format_key_id(second)
            )),
        }
    }
}
