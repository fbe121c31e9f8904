//! Who set what: flags before the environment, before the file, before defaults.

use super::Wrong;
use super::knobs::{CONFIG, KNOBS, Knob, PRINT};
use clap::ArgMatches;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Where settings come from. Tests give their own; nothing else reads the live environment.
pub struct Sources<'a> {
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
    set: BTreeMap<&'static str, Set>,
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
        let mut in_file = match &file {
            Some(path) => read_file(path, sources)?,
            None => BTreeMap::new(),
        };
        let mut set = BTreeMap::new();
        for knob in KNOBS {
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
            } else if let (Some(values), Some(path)) = (in_file.remove(knob.name), &file) {
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
        Ok(Layers { set, print })
    }

    /// A setting's text, if anyone set it.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        self.set.get(name)?.values.first().map(String::as_str)
    }

    /// All values of a setting that may be given several times.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.set
            .get(name)
            .map(|set| set.values.clone())
            .unwrap_or_default()
    }

    /// A setting's meaning, if anyone set it.
    pub(super) fn with<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Wrong> {
        let Some(set) = self.set.get(name) else {
            return Ok(None);
        };
        let text = set.values.first().map_or("", String::as_str);
        let wrong = |why| Wrong(format!("{name} = {text:?} ({}): {why}", set.by));
        parse(text).map(Some).map_err(wrong)
    }
}

/// As a TOML file that would set the same, with who set it behind each line.
impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for knob in KNOBS {
            let Some(set) = self.set.get(knob.name) else {
                writeln!(f, "# {} is not set", knob.name)?;
                continue;
            };
            let mut values = set
                .values
                .iter()
                .map(|value| toml::Value::from(value.as_str()));
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

fn read_file(path: &str, sources: &Sources<'_>) -> Result<BTreeMap<String, Vec<String>>, Wrong> {
    let text = (sources.read)(path).map_err(|error| Wrong(format!("{path}: {error}")))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error| Wrong(format!("{path}: {error}")))?;
    table
        .into_iter()
        .map(|(key, value)| {
            let knob = KNOBS.iter().find(|knob| knob.name == key);
            let knob = knob.ok_or_else(|| Wrong(format!("{path}: {}", unknown(&key))))?;
            let values = texts(knob, value).ok_or_else(|| {
                let list = if knob.list {
                    " or an array of them"
                } else {
                    ""
                };
                Wrong(format!("{path}: {key} is a text or a number{list}"))
            })?;
            Ok((key, values))
        })
        .collect()
}

fn texts(knob: &Knob, value: toml::Value) -> Option<Vec<String>> {
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        toml::Value::Array(values) if knob.list => values.into_iter().map(text).collect(),
        value => Some(vec![text(value)?]),
    }
}

/// What to say about a key that we do not know, with the nearest one that we do.
fn unknown(key: &str) -> String {
    let mut message = format!("there is no setting {key:?}");
    let near = KNOBS
        .iter()
        .map(|knob| (edits(key, knob.name), knob.name))
        .min();
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

#[cfg(test)]
mod tests {
    use super::super::{LogFormat, Settings, command};
    use super::*;
    use std::time::Duration;

    fn layers(flags: &[&str], env: &[(&str, &str)], file: &str) -> Result<Layers, Wrong> {
        let words = ["serve"].iter().chain(flags);
        let flags = command().try_get_matches_from(words).unwrap();
        let find = |name: &str| {
            env.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.to_string())
        };
        let read = |_: &str| Ok(file.to_owned());
        Layers::new(&Sources {
            flags: &flags,
            env: &find,
            read: &read,
        })
    }

    fn settings(flags: &[&str], env: &[(&str, &str)], file: &str) -> Settings {
        Settings::new(&layers(flags, env, file).unwrap()).unwrap()
    }

    #[test]
    fn flags_go_before_variables_before_the_file_before_defaults() {
        let file = "segment = '3s'\nworkers = 3\nlog-format = 'json'\nlisten = ['a:1', 'b:2']";
        let env = [
            ("HEADWATER_SEGMENT", "4s"),
            ("HEADWATER_WORKERS", "4"),
            ("HEADWATER_CONFIG", "f"),
        ];
        let is = settings(&["--segment", "5s", "films"], &env, file);
        assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (5000, 5000));
        assert_eq!(is.workers, 4);
        assert_eq!(is.log_format, LogFormat::Json);
        assert_eq!(is.listen, ["a:1", "b:2"]);
        assert_eq!(is.index_memory_bytes, 512 << 20);
        assert_eq!(is.source, Some("films".into()));
    }

    #[test]
    fn defaults_hold_when_nothing_is_said() {
        let is = settings(&[], &[("HEADWATER_SEGMENT", "")], "");
        assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (6000, 6000));
        assert_eq!(is.listen, ["127.0.0.1:8080"]);
        assert_eq!(is.limits, net::Limits::default());
        assert_eq!((is.source, is.records), (None, None));
    }

    #[test]
    fn lists_and_limits() {
        let is = settings(
            &[
                "--listen",
                "a:1",
                "--listen",
                "b:2",
                "--drain-timeout",
                "3s",
                "--hls-segment",
                "2s",
            ],
            &[("HEADWATER_LISTEN", "c:3, d:4")],
            "",
        );
        assert_eq!(is.listen, ["a:1", "b:2"]);
        assert_eq!(is.limits.drain_timeout, Duration::from_secs(3));
        assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (2000, 6000));
        assert_eq!(
            settings(&[], &[("HEADWATER_LISTEN", "c:3, d:4")], "").listen,
            ["c:3", "d:4"]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_a_remedy() {
        let config = ["--config", "h.toml"];
        for (file, message) in [
            (
                "segmnt = '6s'",
                "h.toml: there is no setting \"segmnt\"; did you mean \"segment\"?",
            ),
            ("colour = 'blue'", "h.toml: there is no setting \"colour\""),
            ("segment = true", "h.toml: segment is a text or a number"),
            ("segment = ['1s']", "h.toml: segment is a text or a number"),
            (
                "listen = [1.5]",
                "h.toml: listen is a text or a number or an array of them",
            ),
        ] {
            assert_eq!(layers(&config, &[], file).unwrap_err().0, message);
        }
        assert!(
            layers(&config, &[], "a = ")
                .unwrap_err()
                .0
                .starts_with("h.toml: TOML parse error")
        );
        for (flags, env, message) in [
            (
                ["--segment", "6"],
                [("", "")],
                "segment = \"6\" (--segment): a duration is a number and ms, s, min or h, such as 6s",
            ),
            (
                ["--workers", "1"],
                [("HEADWATER_SEGMENT", "1h")],
                "segment = \"1h\" (HEADWATER_SEGMENT): a segment lasts from 100ms to 60s",
            ),
            (
                ["--tls-key", "k"],
                [("", "")],
                "tls-cert and tls-key are only of use together",
            ),
        ] {
            let layers = layers(&flags, &env, "").unwrap();
            assert_eq!(Settings::new(&layers).unwrap_err().0, message);
        }
    }

    #[test]
    fn the_printed_settings_are_a_file_that_sets_the_same() {
        let flags = ["--segment", "4s", "--listen", "a:1", "--listen", "b:2"];
        let printed = layers(&flags, &[], "").unwrap().to_string();
        assert!(
            printed.contains("segment = \"4s\"  # --segment\n"),
            "{printed}"
        );
        assert!(
            printed.contains("index-memory = \"512MiB\"  # default\n"),
            "{printed}"
        );
        assert!(printed.contains("# records is not set\n"), "{printed}");
        let again = settings(&["--config", "h.toml"], &[], &printed);
        assert_eq!(again.hls_segment_ms, 4000);
        assert_eq!(again.listen, ["a:1", "b:2"]);
    }
}
