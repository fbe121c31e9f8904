//! The functions that are built in (`functions.toml`): as commands, and as function descriptions.

use super::{SCHEMES, words::closest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// One of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltIn {
    /// What it is.
    pub about: String,
    /// With which others it is found.
    pub group: String,
    /// `command` for servers, `measure` for clients.
    pub role: String,
    /// By the shell; `{with.NAME}` is filled in by [`BuiltIn::command`].
    pub run: String,
    /// Of servers: a path that answers when they are healthy.
    pub health: Option<String>,
    /// What may be said, the default, and what it means.
    #[serde(default)]
    pub with: BTreeMap<String, [String; 2]>,
}

/// All, by name.
pub fn built_in() -> &'static BTreeMap<String, BuiltIn> {
    static ALL: OnceLock<BTreeMap<String, BuiltIn>> = OnceLock::new();
    // A test holds that they can be read.
    ALL.get_or_init(|| toml::from_str(include_str!("functions.toml")).unwrap_or_default())
}

/// The one of this name and role.
///
/// # Errors
/// That there is none, and what there is.
pub fn find(name: &str, role: &str) -> Result<&'static BuiltIn, String> {
    let fitting = built_in()
        .iter()
        .filter(|(_, function)| function.role == role);
    let names: Vec<&str> = fitting.map(|(name, _)| name.as_str()).collect();
    let found = built_in().get(name).filter(|found| found.role == role);
    found.ok_or_else(|| match closest(name, &names) {
        Some(close) => format!("no function {name} is built in; did you mean {close}?"),
        None => format!(
            "no function {name} is built in; there are {}",
            names.join(", ")
        ),
    })
}

impl BuiltIn {
    /// Its command, with what a document says.
    ///
    /// # Errors
    /// For a name that it does not know.
    pub fn command(&self, with: &BTreeMap<String, String>) -> Result<String, String> {
        if let Some(unknown) = with.keys().find(|name| !self.with.contains_key(*name)) {
            let known: Vec<&String> = self.with.keys().collect();
            return Err(format!("with.{unknown}: it knows {known:?}"));
        }
        let filled = self
            .with
            .iter()
            .fold(self.run.clone(), |run, (name, [default, _])| {
                let value = with.get(name).unwrap_or(default);
                run.replace(&format!("{{with.{name}}}"), value)
            });
        Ok(filled)
    }

    /// Its description (FDD).
    pub fn describe(&self, name: &str) -> Value {
        let (input, output) = match self.role.as_str() {
            "measure" => ("in", "results"),
            _ => ("in", "out"),
        };
        let stream = |stream: &str| {
            json!({
                "stream-id": stream, "name": stream, "keywords": [self.group],
                "mime-type": "application/octet-stream", "protocol": "http",
                "caching-server-url": format!("headwater:functions/{name}/{stream}"),
            })
        };
        let port =
            |port: &str| json!([{"port-name": port, "bind": {"stream-id": port, "name": port}}]);
        let parameter = |(id, (name, [default, about])): (usize, (&String, &[String; 2]))| {
            json!({
                "name": format!("with.{name}"), "id": id + 1, "datatype": "string",
                "description": about,
                "values": [{"name": "value", "id": 1, "restrictions": [default]}],
            })
        };
        let parameters: Vec<Value> = self.with.iter().enumerate().map(parameter).collect();
        let mut description = json!({
            "scheme": {"uri": SCHEMES[1]},
            "general": {
                "id": name, "name": name, "description": self.about, "state": "null",
                "input-ports": port(input), "output-ports": port(output),
            },
            "input": {"media-parameters": [stream(input)]},
            "output": {"media-parameters": [stream(output)]},
            "processing": {
                "keywords": [self.group, self.role],
                "image": [{"url": format!("headwater:functions/{name}"), "is-dynamic": false}],
            },
        });
        if !parameters.is_empty() {
            description["configuration"] = json!({"parameters": parameters});
        }
        description
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Level, validate};
    use super::*;

    #[test]
    fn they_can_be_read_and_are_described_as_the_standard_asks() {
        let read: Result<BTreeMap<String, BuiltIn>, _> =
            toml::from_str(include_str!("functions.toml"));
        assert!(read.unwrap().len() >= 10);
        for (name, function) in built_in() {
            let description = function.describe(name);
            assert_eq!(
                validate(&description, Kind::Function, Level::Strict, &[]),
                [],
                "{name}"
            );
            let command = function.command(&BTreeMap::new()).unwrap();
            assert!(!command.contains("{with."), "{name}: {command}");
            for known in function.with.keys() {
                assert!(
                    function.run.contains(&format!("{{with.{known}}}")),
                    "{name}: {known}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert!(
            find("nginz", "command")
                .unwrap_err()
                .contains("did you mean nginx")
        );
        assert!(find("nginx", "measure").unwrap_err().contains("curl"));
        let with = BTreeMap::from([("rot".to_owned(), "x".to_owned())]);
        assert!(
            built_in()["nginx"]
                .command(&with)
                .unwrap_err()
                .contains("with.rot")
        );
    }
}
