//! Settings whose values are `KEY=VALUE` ([`Setting::as_key_values`]), such as
//! `--drm-license-url widevine=URL`.

use super::layers::{SettingOrigin, SettingValue};
use super::{Setting, SettingSources, UsageError, mask_secrets};
use std::collections::BTreeMap;

/// The values from one source. Maps the name of each target setting, such as
/// `drm-license-url-widevine`, to its value.
pub(super) struct KeyedValues(BTreeMap<&'static str, SettingValue>);

impl KeyedValues {
    /// Collects the values that `read` returns for each setting whose values are `KEY=VALUE`.
    ///
    /// # Errors
    /// [`UsageError`] for a value that is not `KEY=VALUE`, or that has an unknown key.
    pub(super) fn collect_key_values(
        sources: &SettingSources<'_>,
        read: impl Fn(&Setting) -> Option<(Vec<String>, SettingOrigin)>,
    ) -> Result<KeyedValues, UsageError> {
        let mut found = BTreeMap::new();
        let settings = || sources.settings.iter().copied().flatten();
        for setting in settings().filter(|setting| setting.key_values) {
            let (values, by) = read(setting).unwrap_or((Vec::new(), SettingOrigin::Default));
            for text in values {
                let (key, value) = text.split_once('=').unwrap_or((&text, ""));
                let name = format!("{}-{key}", setting.name);
                let target = settings().find(|own| own.name == name && !value.is_empty());
                let target = target.ok_or_else(|| unknown_key(sources, setting, (&text, &by)))?;
                let value = SettingValue {
                    values: vec![value.to_owned()],
                    by: by.clone(),
                };
                found.insert(target.name, value);
            }
        }
        Ok(KeyedValues(found))
    }

    /// Returns the value of a setting, if this source sets it.
    pub(super) fn find(&self, setting: &Setting) -> Option<SettingValue> {
        self.0.get(setting.name).cloned()
    }
}

fn unknown_key(
    sources: &SettingSources<'_>,
    setting: &Setting,
    (text, by): (&str, &SettingOrigin),
) -> UsageError {
    let name = setting.name;
    let settings = sources.settings.iter().copied().flatten();
    let keys = settings.filter_map(|own| own.name.strip_prefix(name)?.strip_prefix('-'));
    let keys: Vec<String> = keys.map(|key| format!("{key}=…")).collect();
    let keys = keys.join(" or ");
    let shown = mask_secrets(text);
    UsageError(format!("{name} = {shown:?} ({by}): expected {keys}"))
}
