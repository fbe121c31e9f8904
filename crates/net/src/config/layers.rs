//! The values of settings and their sources. Flags override the environment, the environment
//! overrides the file, and the file overrides the defaults.

use super::closest_name::closest_name;
use super::key_values::KeyedValues;
use super::{CONFIG, PRINT, Setting, UsageError, mask_secrets, parse_memory_bytes};
use crate::resources::MemoryLimit;
use clap::ArgMatches;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::PathBuf;

/// The sources of settings. Tests supply their own sources. [`SettingLayers::read_settings`] uses the
/// environment of the process.
pub struct SettingSources<'a> {
    /// The declared settings.
    pub settings: &'static [&'static [Setting]],
    /// Keys of the file that are not settings. The program itself parses these keys from
    /// [`SettingLayers::settings_file`].
    pub tables: &'static [&'static str],
    /// The parsed command line.
    pub flags: &'a ArgMatches,
    /// Returns the value of an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a settings file.
    pub read: &'a dyn Fn(&str) -> std::io::Result<String>,
}

/// The value of every setting and its source.
#[derive(Debug, Clone, Default)]
pub struct SettingLayers {
    pub(super) settings: &'static [&'static [Setting]],
    pub(super) set: BTreeMap<&'static str, SettingValue>,
    file: Option<(String, String)>,
    /// Whether to print the settings and exit.
    pub print: bool,
}

#[derive(Debug, Clone)]
pub(super) struct SettingValue {
    pub(super) values: Vec<String>,
    pub(super) by: SettingOrigin,
}

#[derive(Debug, Clone)]
pub(super) enum SettingOrigin {
    Flag(String),
    Variable(String),
    File(String),
    /// A table with the settings of one scope, such as `drm-rule 2`, the second table of
    /// `drm-rule`. The values of the table override all other sources.
    Table(String),
    Default,
}

impl SettingLayers {
    /// Collects all settings of a command from its flags, the environment and a file.
    ///
    /// # Errors
    /// Same as [`SettingLayers::new`].
    pub fn read_settings(
        settings: &'static [&'static [Setting]],
        tables: &'static [&'static str],
        flags: &ArgMatches,
    ) -> Result<SettingLayers, UsageError> {
        SettingLayers::new(&SettingSources {
            settings,
            tables,
            flags,
            env: &|name| std::env::var(name).ok(),
            read: &|path| std::fs::read_to_string(path),
        })
    }

    /// Collects all settings from `sources`.
    ///
    /// # Errors
    /// [`UsageError`] for a file that cannot be read or is not TOML, for an unknown key, or for a
    /// value of a wrong type.
    pub fn new(sources: &SettingSources<'_>) -> Result<SettingLayers, UsageError> {
        let from_env =
            |name: &str| (sources.env)(&environment_name(name)).filter(|v| !v.is_empty());
        let flag = sources.flags.get_one::<String>(CONFIG).cloned();
        let file = flag.or_else(|| from_env(CONFIG));
        let read = |path: String| match (sources.read)(&path) {
            Ok(text) => Ok((path, text)),
            Err(error) => Err(UsageError(format!(
                "--config: cannot read {path}: {}",
                crate::describe_io_error(&error)
            ))),
        };
        let file = file.map(read).transpose()?;
        let mut in_file = match &file {
            Some((path, text)) => parse_settings_file(path, text, sources)?,
            None => BTreeMap::new(),
        };
        let of_flags = KeyedValues::collect_key_values(sources, |setting| {
            let values = sources.flags.get_many::<String>(setting.name);
            let values = values.map(|values| values.cloned().collect());
            values.map(|values| (values, SettingOrigin::Flag(argument_name(setting))))
        })?;
        let of_env = KeyedValues::collect_key_values(sources, |setting| {
            let values = from_env(setting.name).map(|value| split_values(setting, &value));
            let by = SettingOrigin::Variable(environment_name(setting.name));
            values.map(|values| (values, by))
        })?;
        let mut set = BTreeMap::new();
        for setting in sources.settings.iter().copied().flatten() {
            if setting.key_values {
                continue;
            }
            let flags = sources.flags.get_many::<String>(setting.name);
            let found = if let Some(values) = flags {
                SettingValue {
                    values: values.cloned().collect(),
                    by: SettingOrigin::Flag(argument_name(setting)),
                }
            } else if let Some(found) = of_flags.find(setting) {
                found
            } else if let Some(value) = from_env(setting.name) {
                SettingValue {
                    values: split_values(setting, &value),
                    by: SettingOrigin::Variable(environment_name(setting.name)),
                }
            } else if let Some(found) = of_env.find(setting) {
                found
            } else if let (Some(values), Some((path, _))) = (in_file.remove(setting.name), &file) {
                SettingValue {
                    values,
                    by: SettingOrigin::File(path.clone()),
                }
            } else if setting.default.is_empty() {
                continue;
            } else {
                SettingValue {
                    values: vec![setting.default.to_owned()],
                    by: SettingOrigin::Default,
                }
            };
            set.insert(setting.name, found);
        }
        let print = sources.flags.get_flag(PRINT);
        Ok(SettingLayers {
            settings: sources.settings,
            set,
            file,
            print,
        })
    }

    /// Returns the path and text of the settings file, if there is one.
    pub fn settings_file(&self) -> Option<(&str, &str)> {
        let (path, text) = self.file.as_ref()?;
        Some((path, text))
    }

    /// Returns a setting as a path, if it is set.
    pub fn setting_path(&self, name: &str) -> Option<PathBuf> {
        self.setting_text(name).map(PathBuf::from)
    }

    /// Returns whether any source sets the setting. A default value does not count.
    pub fn is_set(&self, name: &str) -> bool {
        let found = self.set.get(name);
        found.is_some_and(|set| !matches!(set.by, SettingOrigin::Default))
    }

    /// Returns a setting's text, if it is set.
    pub fn setting_text(&self, name: &str) -> Option<&str> {
        self.set.get(name)?.values.first().map(String::as_str)
    }

    /// Returns all values of a repeatable setting.
    pub fn setting_texts(&self, name: &str) -> Vec<String> {
        self.set
            .get(name)
            .map(|set| set.values.clone())
            .unwrap_or_default()
    }

    /// Parses all values of a repeatable setting.
    ///
    /// # Errors
    /// [`UsageError`] with the value, its source, and the error of `parse`.
    pub fn parse_list_setting<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, UsageError> {
        let Some(set) = self.set.get(name) else {
            return Ok(Vec::new());
        };
        let values = set.values.iter().map(|text| {
            let wrong = |why| {
                let shown = mask_secrets(text);
                UsageError(format!("{name} = {shown:?} ({}): {why}", set.by))
            };
            parse(text).map_err(wrong)
        });
        values.collect()
    }

    /// Parses a setting, if it is set.
    ///
    /// # Errors
    /// [`UsageError`] with the value, its source, and the error of `parse`.
    pub fn parse_setting<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, UsageError> {
        let Some(set) = self.set.get(name) else {
            return Ok(None);
        };
        let text = set.values.first().map_or("", String::as_str);
        let wrong = |why| {
            UsageError(format!(
                "{name} = {:?} ({}): {why}",
                mask_secrets(text),
                set.by
            ))
        };
        parse(text).map(Some).map_err(wrong)
    }

    /// Parses a memory size, if the setting is set. The size may be a percentage of the memory
    /// limit.
    ///
    /// # Errors
    /// Same as [`SettingLayers::parse_setting`].
    pub fn parse_memory_setting(&self, name: &str) -> Result<Option<u64>, UsageError> {
        let limit_bytes = self.memory_limit_bytes()?;
        let limit_bytes = limit_bytes.unwrap_or_else(|| MemoryLimit::detect_memory_limit().bytes());
        self.parse_setting(name, |text| parse_memory_bytes(text, limit_bytes))
    }

    /// Parses the setting `memory-limit`, if it is set. A percentage refers to the detected memory
    /// limit.
    pub(super) fn memory_limit_bytes(&self) -> Result<Option<u64>, UsageError> {
        self.parse_setting("memory-limit", |text| {
            match parse_memory_bytes(text, MemoryLimit::detect_memory_limit().bytes())? {
                0 => Err("must be more than 0B".to_owned()),
                bytes => Ok(bytes),
            }
        })
    }
}

/// Prints all settings as a TOML file, with the source of each value in a comment. Secrets in URLs
/// are masked.
impl fmt::Display for SettingLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setting in self.settings.iter().copied().flatten() {
            if setting.key_values {
                continue;
            }
            let Some(set) = self.set.get(setting.name) else {
                writeln!(f, "# {} is not set", setting.name)?;
                continue;
            };
            let mut values = set
                .values
                .iter()
                .map(|value| toml::Value::from(mask_secrets(value)));
            let value = if setting.list {
                toml::Value::Array(values.collect())
            } else {
                values.next_back().unwrap_or_else(|| "".into())
            };
            write!(f, "{} = {value}  # {}", setting.name, set.by)?;
            if value.as_str().is_some_and(|text| text.contains('%'))
                && let Ok(Some(bytes)) = self.parse_memory_setting(setting.name)
            {
                write!(f, "; here {} MiB", bytes >> 20)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Flag(name) => f.write_str(name),
            SettingOrigin::Variable(name) => f.write_str(name),
            SettingOrigin::File(path) => f.write_str(path),
            SettingOrigin::Table(name) => f.write_str(name),
            SettingOrigin::Default => f.write_str("default"),
        }
    }
}

/// Returns the name of a setting on the command line, such as `--listen`. An argument without a
/// flag has a name such as `SOURCE`.
fn argument_name(setting: &Setting) -> String {
    match setting.positional {
        true => setting.value.to_owned(),
        false => format!("--{}", setting.name),
    }
}

pub(super) fn environment_name(name: &str) -> String {
    format!("HEADWATER_{}", name.to_uppercase().replace('-', "_"))
}

fn split_values(setting: &Setting, value: &str) -> Vec<String> {
    if setting.list && !setting.inline_tables {
        value
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect()
    } else {
        vec![value.to_owned()]
    }
}

fn parse_settings_file(
    path: &str,
    text: &str,
    sources: &SettingSources<'_>,
) -> Result<BTreeMap<String, Vec<String>>, UsageError> {
    let table: toml::Table = text
        .parse()
        .map_err(|error| UsageError(format!("{path}: {error}")))?;
    let lines = table
        .into_iter()
        .filter(|(key, _)| !sources.tables.contains(&key.as_str()));
    flatten_tables(lines)
        .map(|(key, value)| {
            let mut settings = sources.settings.iter().copied().flatten();
            let setting = settings.find(|setting| setting.name == key && !setting.key_values);
            let setting = setting.ok_or_else(|| {
                UsageError(format!("{path}: {}", unknown_key_message(&key, sources)))
            })?;
            let values = toml_to_texts(setting, value).ok_or_else(|| {
                let list = match (setting.list, setting.fields) {
                    _ if setting.inline_tables => ", or an array of tables".to_owned(),
                    (true, []) => " or an array of them".to_owned(),
                    (true, fields) => format!(", or an array of tables of {}", fields.join(", ")),
                    (false, _) => String::new(),
                };
                UsageError(format!("{path}: {key} must be a text or a number{list}"))
            })?;
            Ok((key, values))
        })
        .collect()
}

/// Limit on the depth of nested tables in a settings file. The key `drm.license-url.widevine` has a
/// depth of 2.
const TABLE_DEPTH_MAX: usize = 3;

/// Flattens nested tables. For example, `[storage] retries` becomes `storage-retries`. Tables that
/// are nested too deeply remain tables. They are rejected later, because they match no setting.
pub(super) fn flatten_tables(
    lines: impl Iterator<Item = (String, toml::Value)>,
) -> impl Iterator<Item = (String, toml::Value)> {
    lines.flat_map(|(key, value)| {
        let mut out = Vec::new();
        flatten_into_pairs(key, value, TABLE_DEPTH_MAX, &mut out);
        out
    })
}

fn flatten_into_pairs(
    key: String,
    value: toml::Value,
    depth_left: usize,
    out: &mut Vec<(String, toml::Value)>,
) {
    match value {
        toml::Value::Table(inner) if depth_left > 0 => {
            for (sub, value) in inner {
                flatten_into_pairs(format!("{key}-{sub}"), value, depth_left - 1, out);
            }
        }
        value => out.push((key, value)),
    }
}

pub(super) fn toml_to_texts(setting: &Setting, value: toml::Value) -> Option<Vec<String>> {
    let text = |value: toml::Value| match value {
        toml::Value::Table(_) if setting.inline_tables => Some(value.to_string()),
        toml::Value::Table(mut table) => {
            let known = |key: &String| setting.fields.contains(&key.as_str());
            if setting.fields.is_empty() || !table.keys().all(known) {
                return None;
            }
            let fields = setting
                .fields
                .iter()
                .filter_map(|field| table.remove(*field));
            let fields: Vec<String> = fields.map(scalar_text).collect::<Option<_>>()?;
            Some(fields.join(" "))
        }
        value => scalar_text(value),
    };
    match value {
        toml::Value::Array(values) if setting.list => values.into_iter().map(text).collect(),
        toml::Value::Boolean(on) if setting.switch => {
            Some(vec![if on { "yes" } else { "no" }.to_owned()])
        }
        value => Some(vec![text(value)?]),
    }
}

fn scalar_text(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the error for an unknown key, with the most similar known key.
fn unknown_key_message(key: &str, sources: &SettingSources<'_>) -> String {
    let mut message = format!("unknown setting {key:?}");
    let settings = sources
        .settings
        .iter()
        .copied()
        .flatten()
        .map(|setting| setting.name);
    let names = settings.chain(sources.tables.iter().copied());
    if let Some(name) = closest_name(key, names) {
        let _ = write!(message, "; did you mean {name:?}?");
    }
    message
}
