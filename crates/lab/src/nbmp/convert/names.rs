//! Names in an experiment's tables.

use crate::experiment::find_built_in_function;
use std::collections::BTreeSet;
use toml::Table;

/// Names that inputs may refer to.
pub(super) struct ExperimentNames<'a> {
    experiment: &'a Table,
    sources: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
    /// Functions that feed another function or sink.
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
                .is_some_and(|s| media_url_parts(s).is_some())
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
                    all.consumed.extend(known_inputs(consumer, &all));
                }
            }
        }
        all
    }

    /// Returns the NBMP function that an experiment's function is an instance of: the built-in
    /// function that it uses, or `command`.
    pub(super) fn id_of(&self, function: &str) -> String {
        let table = self
            .experiment
            .get("function")
            .and_then(|all| all.get(function));
        let used = table
            .and_then(toml::Value::as_table)
            .and_then(|table| used_function(table, "command"));
        used.unwrap_or_else(|| "command".into())
    }
}

/// Returns the name of the built-in function that a table uses, if it has this role.
pub(super) fn used_function(table: &Table, role: &str) -> Option<String> {
    let name = table.get("use")?.as_str()?;
    find_built_in_function(name, role).ok()?;
    Some(name.to_owned())
}

/// Returns the URI scheme and text of a table with only `media = PATH` or `make = COMMAND`.
pub(super) fn media_url_parts(table: &Table) -> Option<(&'static str, &str)> {
    let (key, text) = table.iter().next().filter(|_| table.len() == 1)?;
    let scheme = match key.as_str() {
        "media" => "file:",
        "make" => "make:",
        _ => return None,
    };
    Some((scheme, text.as_str()?)).filter(|(_, text)| !text.is_empty())
}

/// Returns the inputs, if all are known and unique; otherwise nothing.
pub(super) fn known_inputs(table: &Table, names: &ExperimentNames<'_>) -> Vec<String> {
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
