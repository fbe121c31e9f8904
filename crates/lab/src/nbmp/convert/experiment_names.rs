//! Names of sources and functions in an experiment's tables.

use crate::experiment::find_built_in_function;
use std::collections::BTreeSet;
use toml::Table;

/// The sources and functions to which the key `input` of an experiment can refer.
pub(super) struct ExperimentNames<'a> {
    experiment: &'a Table,
    sources: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
    /// Names that are an input of at least one function or sink.
    pub(super) consumed: BTreeSet<String>,
}

impl<'a> ExperimentNames<'a> {
    pub(super) fn from_experiment(experiment: &'a Table) -> ExperimentNames<'a> {
        let names = |kind| {
            let table = experiment.get(kind).and_then(toml::Value::as_table);
            let names = table.into_iter().flatten().map(|(name, _)| name.clone());
            names.collect()
        };
        let table = experiment.get("source").and_then(toml::Value::as_table);
        let streams = table.into_iter().flatten();
        let streams = streams.filter(|(_, source)| {
            source
                .as_table()
                .is_some_and(|s| source_scheme_and_value(s).is_some())
        });
        let mut all = ExperimentNames {
            experiment,
            sources: streams.map(|(name, _)| name.clone()).collect(),
            functions: names("function"),
            consumed: BTreeSet::new(),
        };
        for kind in ["function", "sink"] {
            let table = experiment.get(kind).and_then(toml::Value::as_table);
            for (_, consumer) in table.into_iter().flatten() {
                if let Some(consumer) = consumer.as_table() {
                    all.consumed.extend(inputs_if_all_known(consumer, &all));
                }
            }
        }
        all
    }

    /// Returns the NBMP identifier of a function of the experiment. The identifier is the name of
    /// the built-in function that the table uses, or else `command`.
    pub(super) fn function_identifier(&self, function: &str) -> String {
        let table = self
            .experiment
            .get("function")
            .and_then(|all| all.get(function));
        let used = table
            .and_then(toml::Value::as_table)
            .and_then(|table| used_built_in_function(table, "command"));
        used.unwrap_or_else(|| "command".into())
    }
}

/// Returns the name of the built-in function that a table uses. Returns `None` if this function
/// does not exist or has another role.
pub(super) fn used_built_in_function(table: &Table, role: &str) -> Option<String> {
    let name = table.get("use")?.as_str()?;
    find_built_in_function(name, role).ok()?;
    Some(name.to_owned())
}

/// Returns the URI scheme and the value of a source that contains only `media = PATH` or
/// `make = COMMAND`. Returns `None` for any other table.
pub(super) fn source_scheme_and_value(table: &Table) -> Option<(&'static str, &str)> {
    let (key, text) = table.iter().next().filter(|_| table.len() == 1)?;
    let scheme = match key.as_str() {
        "media" => "file:",
        "make" => "make:",
        _ => return None,
    };
    Some((scheme, text.as_str()?)).filter(|(_, text)| !text.is_empty())
}

/// Returns the inputs of a table. Returns an empty list unless all inputs are known and unique.
pub(super) fn inputs_if_all_known(table: &Table, names: &ExperimentNames<'_>) -> Vec<String> {
    let list = table.get("input").and_then(toml::Value::as_array);
    let texts: Vec<String> = list
        .into_iter()
        .flatten()
        .filter_map(|input| input.as_str().map(str::to_owned))
        .collect();
    let known = |name: &String| names.sources.contains(name) != names.functions.contains(name);
    let once = texts.iter().collect::<BTreeSet<_>>().len() == texts.len();
    let all = list.is_some_and(|list| list.len() == texts.len() && !list.is_empty());
    if all && once && texts.iter().all(known) {
        return texts;
    }
    Vec::new()
}
