//! What an experiment's tables name, and by which names.

use super::super::functions;
use std::collections::BTreeSet;
use toml::Table;

/// What inputs may name.
pub(super) struct Names<'a> {
    experiment: &'a Table,
    sources: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
    /// Functions that are some other's input.
    pub(super) consumed: BTreeSet<String>,
}

impl<'a> Names<'a> {
    pub(super) fn of(experiment: &'a Table) -> Names<'a> {
        let names = |kind| {
            let table = experiment.get(kind).and_then(toml::Value::as_table);
            let names = table.into_iter().flatten().map(|(name, _)| name.clone());
            names.collect()
        };
        let table = experiment.get("source").and_then(toml::Value::as_table);
        let streams = table.into_iter().flatten();
        let streams =
            streams.filter(|(_, source)| source.as_table().is_some_and(|s| media(s).is_some()));
        let mut all = Names {
            experiment,
            sources: streams.map(|(name, _)| name.clone()).collect(),
            functions: names("function"),
            consumed: BTreeSet::new(),
        };
        for kind in ["function", "sink"] {
            let table = experiment.get(kind).and_then(toml::Value::as_table);
            for (_, consumer) in table.into_iter().flatten() {
                if let Some(consumer) = consumer.as_table() {
                    all.consumed.extend(joined(consumer, &all));
                }
            }
        }
        all
    }

    /// Which function an instance is of.
    pub(super) fn id_of(&self, function: &str) -> String {
        let table = self
            .experiment
            .get("function")
            .and_then(|all| all.get(function));
        let used = table
            .and_then(toml::Value::as_table)
            .and_then(|table| named(table, "command"));
        used.unwrap_or_else(|| "command".into())
    }
}

/// The name of a function that is built in, of this role.
pub(super) fn named(table: &Table, role: &str) -> Option<String> {
    let name = table.get("use")?.as_str()?;
    functions::find(name, role).ok()?;
    Some(name.to_owned())
}

/// `media = PATH` or `make = COMMAND`, and nothing else: a URI's scheme, and what it says.
pub(super) fn media(table: &Table) -> Option<(&'static str, &str)> {
    let (key, text) = table.iter().next().filter(|_| table.len() == 1)?;
    let scheme = match key.as_str() {
        "media" => "file:",
        "make" => "make:",
        _ => return None,
    };
    Some((scheme, text.as_str()?)).filter(|(_, text)| !text.is_empty())
}

/// Inputs that are known, each once; none where not all are so.
pub(super) fn joined(table: &Table, names: &Names<'_>) -> Vec<String> {
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
