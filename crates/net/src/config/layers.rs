//! Who set what: flags before the environment, before the file, before defaults.

use super::{CONFIG, Knob, PRINT, Wrong, masked};
use clap::ArgMatches;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::PathBuf;

/// Where settings come from. Tests give their own; nothing else reads the live environment.
pub struct Sources<'a> {
    /// What can be set.
    pub knobs: &'static [&'static [Knob]],
    /// Keys of the file that are none of the knobs: the program reads them itself, from
    /// [`Layers::file`].
    pub tables: &'static [&'static str],
    /// The command line.
    pub flags: &'a ArgMatches,
    /// An environment variable's value.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a settings file.
    pub read: &'a dyn Fn(&str) -> std::io::Result<String>,
}

/// Every setting's value, and who set it.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    knobs: &'static [&'static [Knob]],
    set: BTreeMap<&'static str, Set>,
    file: Option<(String, String)>,
    /// Whether they are only to be printed.
    pub print: bool,
}

#[derive(Debug, Clone)]
struct Set {
    values: Vec<String>,
    by: By,
}

#[derive(Debug, Clone)]
enum By {
    Flag(String),
    Variable(String),
    File(String),
    Default,
}

impl Layers {
    /// Collects all settings.
    ///
    /// # Errors
    /// [`Wrong`] for a file that cannot be read or is no TOML, a key that we do not know, or a
    /// value that is neither text nor number.
    pub fn new(sources: &Sources<'_>) -> Result<Layers, Wrong> {
        let from_env = |name: &str| (sources.env)(&variable(name)).filter(|v| !v.is_empty());
        let flag = sources.flags.get_one::<String>(CONFIG).cloned();
        let file = flag.or_else(|| from_env(CONFIG));
        let read = |path: String| match (sources.read)(&path) {
            Ok(text) => Ok((path, text)),
            Err(error) => Err(Wrong(format!("{path}: {error}"))),
        };
        let file = file.map(read).transpose()?;
        let mut in_file = match &file {
            Some((path, text)) => read_file(path, text, sources)?,
            None => BTreeMap::new(),
        };
        let mut set = BTreeMap::new();
        for knob in sources.knobs.iter().copied().flatten() {
            let flags = sources.flags.get_many::<String>(knob.name);
            let found = if let Some(values) = flags {
                Set {
                    values: values.cloned().collect(),
                    by: By::Flag(knob.name.to_owned()),
                }
            } else if let Some(value) = from_env(knob.name) {
                Set {
                    values: split(knob, &value),
                    by: By::Variable(variable(knob.name)),
                }
            } else if let (Some(values), Some((path, _))) = (in_file.remove(knob.name), &file) {
                Set {
                    values,
                    by: By::File(path.clone()),
                }
            } else if knob.default.is_empty() {
                continue;
            } else {
                Set {
                    values: vec![knob.default.to_owned()],
                    by: By::Default,
                }
            };
            set.insert(knob.name, found);
        }
        let print = sources.flags.get_flag(PRINT);
        Ok(Layers {
            knobs: sources.knobs,
            set,
            file,
            print,
        })
    }

    /// The settings file's path and text, where there is one.
    pub fn file(&self) -> Option<(&str, &str)> {
        let (path, text) = self.file.as_ref()?;
        Some((path, text))
    }

    /// A setting that is a path, if anyone set it.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.one(name).map(PathBuf::from)
    }

    /// A setting's text, if anyone set it.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.set.get(name)?.values.first().map(String::as_str)
    }

    /// All values of a setting that may be given several times.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.set
            .get(name)
            .map(|set| set.values.clone())
            .unwrap_or_default()
    }

    /// A setting's meaning, if anyone set it.
    ///
    /// # Errors
    /// [`Wrong`] with the value, who set it, and what `parse` says about it.
    pub fn with<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Wrong> {
        let Some(set) = self.set.get(name) else {
            return Ok(None);
        };
        let text = set.values.first().map_or("", String::as_str);
        let wrong = |why| Wrong(format!("{name} = {:?} ({}): {why}", masked(text), set.by));
        parse(text).map(Some).map_err(wrong)
    }
}

/// As a TOML file that would set the same, but for secrets in URLs; with who set it behind each line.
impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for knob in self.knobs.iter().copied().flatten() {
            let Some(set) = self.set.get(knob.name) else {
                writeln!(f, "# {} is not set", knob.name)?;
                continue;
            };
            let mut values = set
                .values
                .iter()
                .map(|value| toml::Value::from(masked(value)));
            let value = if knob.list {
                toml::Value::Array(values.collect())
            } else {
                values.next_back().unwrap_or_else(|| "".into())
            };
            writeln!(f, "{} = {value}  # {}", knob.name, set.by)?;
        }
        Ok(())
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Flag(name) => write!(f, "--{name}"),
            By::Variable(name) => f.write_str(name),
            By::File(path) => f.write_str(path),
            By::Default => f.write_str("default"),
        }
    }
}

fn variable(name: &str) -> String {
    format!("HEADWATER_{}", name.to_uppercase().replace('-', "_"))
}

fn split(knob: &Knob, value: &str) -> Vec<String> {
    if knob.list {
        value
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect()
    } else {
        vec![value.to_owned()]
    }
}

fn read_file(
    path: &str,
    text: &str,
    sources: &Sources<'_>,
) -> Result<BTreeMap<String, Vec<String>>, Wrong> {
    let table: toml::Table = text
        .parse()
        .map_err(|error| Wrong(format!("{path}: {error}")))?;
    let lines = table
        .into_iter()
        .filter(|(key, _)| !sources.tables.contains(&key.as_str()));
    flat(lines)
        .map(|(key, value)| {
            let mut knobs = sources.knobs.iter().copied().flatten();
            let knob = knobs.find(|knob| knob.name == key);
            let knob = knob.ok_or_else(|| Wrong(format!("{path}: {}", unknown(&key, sources))))?;
            let values = texts(knob, value).ok_or_else(|| {
                let list = match (knob.list, knob.fields) {
                    (true, []) => " or an array of them".to_owned(),
                    (true, fields) => format!(", or an array of tables of {}", fields.join(", ")),
                    (false, _) => String::new(),
                };
                Wrong(format!("{path}: {key} is a text or a number{list}"))
            })?;
            Ok((key, values))
        })
        .collect()
}

/// A table's lines, with those of tables in it: `[storage] retries` is `storage-retries`.
fn flat(
    lines: impl Iterator<Item = (String, toml::Value)>,
) -> impl Iterator<Item = (String, toml::Value)> {
    lines.flat_map(|(key, value)| match value {
        toml::Value::Table(inner) => {
            let inner = inner.into_iter();
            inner
                .map(|(sub, value)| (format!("{key}-{sub}"), value))
                .collect()
        }
        value => vec![(key, value)],
    })
}

fn texts(knob: &Knob, value: toml::Value) -> Option<Vec<String>> {
    let text = |value: toml::Value| match value {
        toml::Value::Table(mut table) => {
            let known = |key: &String| knob.fields.contains(&key.as_str());
            if knob.fields.is_empty() || !table.keys().all(known) {
                return None;
            }
            let fields = knob.fields.iter().filter_map(|field| table.remove(*field));
            let fields: Vec<String> = fields.map(plain).collect::<Option<_>>()?;
            Some(fields.join(" "))
        }
        value => plain(value),
    };
    match value {
        toml::Value::Array(values) if knob.list => values.into_iter().map(text).collect(),
        value => Some(vec![text(value)?]),
    }
}

fn plain(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What to say about a key that we do not know, with the nearest one that we do.
fn unknown(key: &str, sources: &Sources<'_>) -> String {
    let mut message = format!("there is no setting {key:?}");
    let knobs = sources
        .knobs
        .iter()
        .copied()
        .flatten()
        .map(|knob| knob.name);
    let names = knobs.chain(sources.tables.iter().copied());
    let near = names.map(|name| (edits(key, name), name)).min();
    if let Some((distance, name)) = near
        && distance <= 1 + key.len() / 3
    {
        let _ = write!(message, "; did you mean {name:?}?");
    }
    message
}

/// Levenshtein's distance: letters to add, remove or replace.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
