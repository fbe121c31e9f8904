//! Settings that a table overrides for one scope, such as one folder.

use super::closest_name::closest_name;
use super::layers::{SettingOrigin, SettingValue, flatten_tables, toml_to_texts};
use super::{Setting, SettingLayers, UsageError};

/// The settings of one scope.
#[derive(Debug, Clone)]
pub struct ScopedLayers {
    /// Value of the key that names the scope.
    pub scope: String,
    /// Position of the table, such as `drm-rule 2`, for error messages.
    pub place: String,
    /// All settings. The values in the table replace the values from other sources.
    pub layers: SettingLayers,
}

impl SettingLayers {
    /// Reads the tables of the setting `name` ([`Setting::accept_inline_tables`]). Each table has the
    /// key `scope_key`. The other keys are the names of settings, with `prefix` removed.
    ///
    /// # Errors
    /// [`UsageError`] for text that is not a TOML table, for a missing scope, for an unknown key,
    /// or for a value of a wrong type.
    pub fn read_scoped_layers(
        &self,
        name: &str,
        prefix: &str,
        scope_key: &str,
    ) -> Result<Vec<ScopedLayers>, UsageError> {
        let texts = self.setting_texts(name);
        let numbered = texts
            .iter()
            .zip(1..)
            .map(|(text, n)| (text, format!("{name} {n}")));
        numbered
            .map(|(text, place)| {
                let table = parse_table(text);
                let mut table = table.map_err(|why| UsageError(format!("{place}: {why}")))?;
                let Some(toml::Value::String(scope)) = table.remove(scope_key) else {
                    let what = format!("{place}: expected {scope_key} = \"...\"");
                    return Err(UsageError(what));
                };
                let layers = self.override_with(&place, (name, prefix), table)?;
                Ok(ScopedLayers {
                    scope,
                    place,
                    layers,
                })
            })
            .collect()
    }

    fn override_with(
        &self,
        place: &str,
        (name, prefix): (&str, &str),
        table: toml::Table,
    ) -> Result<SettingLayers, UsageError> {
        let mut layers = self.clone();
        let prefixed = table
            .into_iter()
            .map(|(key, value)| (format!("{prefix}{key}"), value));
        for (key, value) in flatten_tables(prefixed) {
            let setting = self.find_declaration(place, &key, (name, prefix))?;
            let values = toml_to_texts(setting, value)
                .ok_or_else(|| UsageError(format!("{place}: {key} has a value of a wrong type")))?;
            let by = SettingOrigin::Table(place.to_owned());
            layers.set.insert(setting.name, SettingValue { values, by });
        }
        Ok(layers)
    }

    fn find_declaration(
        &self,
        place: &str,
        key: &str,
        (name, prefix): (&str, &str),
    ) -> Result<&'static Setting, UsageError> {
        let declared = || self.settings.iter().copied().flatten();
        let is_key = |s: &&Setting| s.name != name && s.name.starts_with(prefix) && !s.key_values;
        let allowed = || declared().filter(is_key);
        let found = allowed().find(|setting| setting.name == key);
        found.ok_or_else(|| {
            let near = closest_name(key, allowed().map(|setting| setting.name));
            let hint = near.map(|near| format!("; did you mean {:?}?", as_table_key(near, prefix)));
            let (key, hint) = (as_table_key(key, prefix), hint.unwrap_or_default());
            UsageError(format!("{place}: unknown key {key:?}{hint}"))
        })
    }
}

/// Parses an inline table. The error does not quote the text, because the text may contain
/// credentials.
fn parse_table(text: &str) -> Result<toml::Table, String> {
    let line = format!("table = {text}");
    let parsed: toml::Table = line
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    match parsed.into_iter().next() {
        Some((_, toml::Value::Table(table))) => Ok(table),
        _ => Err("expected a table such as { path = \"...\" }".to_owned()),
    }
}

fn as_table_key<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.strip_prefix(prefix).unwrap_or(name)
}
