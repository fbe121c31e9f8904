//! The built-in functions (`functions.toml`) and their command lines.

use crate::closest_name::find_closest_name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The reason why a built-in function cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BuiltInFunctionError {
    /// The name is unknown, but similar to a known name.
    #[error("no built-in function {name}; did you mean {close}?")]
    Misspelled {
        /// The name in the document.
        name: String,
        /// The similar name.
        close: String,
    },
    /// The name is unknown, and no known name is similar.
    #[error("no built-in function {name}; the functions are {known}")]
    Unknown {
        /// The name in the document.
        name: String,
        /// Names of all functions with the requested role.
        known: String,
    },
    /// A parameter that the function does not have.
    #[error("unknown parameter with.{name}; the function has {known:?}")]
    Parameter {
        /// The parameter in the document.
        name: String,
        /// All parameters.
        known: Vec<String>,
    },
}

/// A built-in function.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltInFunction {
    /// Description.
    pub about: String,
    /// Group of the function. Clients of the Workflow Manager can search for functions by group.
    pub group: String,
    /// `command` for servers, or `measure` for clients.
    pub role: String,
    /// Shell command; [`BuiltInFunction::command_line`] fills in `{with.NAME}`.
    pub run: String,
    /// Path of the health check, for servers.
    pub health: Option<String>,
    /// Default value and description of each parameter.
    #[serde(default)]
    pub with: BTreeMap<String, [String; 2]>,
}

/// Returns all built-in functions by name.
pub fn built_in_functions() -> &'static BTreeMap<String, BuiltInFunction> {
    static ALL: OnceLock<BTreeMap<String, BuiltInFunction>> = OnceLock::new();
    // Parsing cannot fail, because a unit test parses the same table.
    ALL.get_or_init(|| toml::from_str(include_str!("functions.toml")).unwrap_or_default())
}

/// Finds a function by name and role.
///
/// # Errors
/// No built-in function has this name and this role.
pub fn find_built_in_function(
    name: &str,
    role: &str,
) -> Result<&'static BuiltInFunction, BuiltInFunctionError> {
    let fitting = built_in_functions()
        .iter()
        .filter(|(_, function)| function.role == role);
    let names: Vec<&str> = fitting.map(|(name, _)| name.as_str()).collect();
    let found = built_in_functions()
        .get(name)
        .filter(|found| found.role == role);
    found.ok_or_else(|| match find_closest_name(name, &names) {
        Some(close) => BuiltInFunctionError::Misspelled {
            name: name.to_owned(),
            close: close.to_owned(),
        },
        None => BuiltInFunctionError::Unknown {
            name: name.to_owned(),
            known: names.join(", "),
        },
    })
}

impl BuiltInFunction {
    /// Returns the command line with the values of `with` filled in. Other parameters have their
    /// default values.
    ///
    /// # Errors
    /// `with` contains a parameter that the function does not have.
    pub fn command_line(
        &self,
        with: &BTreeMap<String, String>,
    ) -> Result<String, BuiltInFunctionError> {
        if let Some(unknown) = with.keys().find(|name| !self.with.contains_key(*name)) {
            return Err(BuiltInFunctionError::Parameter {
                name: unknown.clone(),
                known: self.with.keys().cloned().collect(),
            });
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_parses_and_every_placeholder_is_filled() {
        let parsed: Result<BTreeMap<String, BuiltInFunction>, _> =
            toml::from_str(include_str!("functions.toml"));
        assert!(parsed.unwrap().len() >= 10);
        for (name, function) in built_in_functions() {
            let command = function.command_line(&BTreeMap::new()).unwrap();
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
    fn unknown_names_and_parameters_are_refused() {
        let error = |name, role| find_built_in_function(name, role).unwrap_err().to_string();
        assert!(error("nginz", "command").contains("did you mean nginx"));
        assert!(error("nginx", "measure").contains("curl"));
        let with = BTreeMap::from([("rot".to_owned(), "x".to_owned())]);
        let error = built_in_functions()["nginx"]
            .command_line(&with)
            .unwrap_err();
        assert!(error.to_string().contains("with.rot"));
    }
}
