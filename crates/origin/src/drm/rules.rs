//! Protection per folder, as the tables `[[drm.rule]]` define it.

use super::path_pattern::PathPattern;
use super::settings::DrmSettings;
use net::config::{ScopedLayers, SettingLayers, UsageError};

/// Maximum number of rules. The number is limited, because the path of a title may be compared with
/// every rule.
const RULES_MAX: usize = 256;

/// The settings for the protection of all titles of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmRules {
    /// The first rule that matches a title's path applies. If the rule has no settings, the title
    /// stays unencrypted.
    pub rules: Vec<(PathPattern, Option<DrmSettings>)>,
    /// Settings for titles that no rule matches.
    pub default_settings: Option<DrmSettings>,
}

impl DrmRules {
    /// Parses the protection settings; `None` if no title is protected.
    ///
    /// # Errors
    /// A [`UsageError`] for the first invalid value.
    pub fn parse_drm_rules(layers: &SettingLayers) -> Result<Option<DrmRules>, UsageError> {
        let tables = layers.read_scoped_layers("drm-rule", "drm-", "path")?;
        if tables.len() > RULES_MAX {
            let what = format!("drm-rule: more than {RULES_MAX} rules");
            return Err(UsageError(what));
        }
        if !tables.is_empty() && !layers.is_set("drm-keys") {
            let what = "drm-rule: titles that no rule matches have no keys; \
                        set drm-keys, or drm-keys = \"none\" to serve them unencrypted";
            return Err(UsageError(what.to_owned()));
        }
        let rules = tables.iter().map(parse_rule);
        let parsed = DrmRules {
            rules: rules.collect::<Result<_, _>>()?,
            default_settings: DrmSettings::parse_drm_settings(layers)?,
        };
        Ok(Some(parsed).filter(DrmRules::is_protecting))
    }

    fn is_protecting(&self) -> bool {
        let mut rules = self.rules.iter();
        self.default_settings.is_some() || rules.any(|(_, settings)| settings.is_some())
    }
}

fn parse_rule(table: &ScopedLayers) -> Result<(PathPattern, Option<DrmSettings>), UsageError> {
    let pattern = PathPattern::parse_pattern(&table.scope)
        .map_err(|why| UsageError(format!("{}: path = {:?}: {why}", table.place, table.scope)))?;
    Ok((pattern, DrmSettings::parse_drm_settings(&table.layers)?))
}
