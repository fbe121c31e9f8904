//! Converts workflow descriptions of other programs to experiments. Replaces the described
//! functions by built-in functions, and adds what only an experiment has, such as rounds, ports,
//! commands and quantities.

mod function_map;
mod instances;

use super::NbmpFault;
use super::convert::{EXPERIMENT, OWN_FUNCTIONS, percent_decode, percent_encode, read_parameters};
use super::json_path::JsonPath;
use function_map::{default_measurements, find_parameter_mapping};
use instances::{FunctionInstance, list_instances};
use serde_json::Value;
use std::collections::BTreeSet;
use toml::Table;

/// Port of the first server whose description states no port. Each further server without a port
/// gets the next port.
const PORT_FIRST: u16 = 8080;

/// An experiment made from a foreign description.
#[derive(Debug)]
pub(crate) struct AdaptedWorkflow {
    /// The experiment.
    pub(crate) table: Table,
    /// JSONPaths of the description's members that have no effect.
    pub(crate) ignored: Vec<String>,
}

/// Returns whether a program other than the lab wrote the description. The lab's own descriptions
/// contain an instance with the parameters of the experiment, such as `rounds`, or functions that
/// only the lab has.
pub(crate) fn is_foreign_workflow(workflow: &Value) -> bool {
    !enumerate_processing_array(workflow, "function-restrictions").any(|(_, function)| {
        let id = function.pointer("/general/id").and_then(Value::as_str);
        let is_own = id.is_some_and(|id| OWN_FUNCTIONS.contains(&id));
        is_own || text_field(function, "instance") == Some(EXPERIMENT)
    })
}

/// Converts a foreign description to an experiment.
///
/// # Errors
/// Returns a fault for every function for which the lab has no replacement, and for every client or
/// cache that no function feeds. Also returns a fault for every file that cannot be a source, and if
/// the description has no client.
pub(crate) fn adapt_workflow(workflow: &Value) -> Result<AdaptedWorkflow, Vec<NbmpFault>> {
    let (instances, mut ignored) = list_instances(workflow)?;
    let mut table = Table::new();
    let name = workflow.pointer("/general/name").and_then(Value::as_str);
    let question = workflow
        .pointer("/general/description")
        .and_then(Value::as_str);
    table.insert("name".into(), name.unwrap_or("workflow").into());
    let question = question.filter(|text| !text.is_empty());
    table.insert(
        "question".into(),
        question.unwrap_or("How does this workflow perform?").into(),
    );
    table.insert("rounds".into(), 1.into());
    let mut faults = add_sources(workflow, &mut table, &mut ignored);
    let mut port = PORT_FIRST;
    for instance in &instances {
        let kind = if instance.is_sink { "sink" } else { "function" };
        match instance_to_table(workflow, instance, &instances, &table, &mut ignored) {
            Ok(mut made) => {
                if !instance.is_sink && !made.contains_key("port") {
                    made.insert("port".into(), i64::from(port).into());
                    port = port.saturating_add(1);
                }
                child_table(&mut table, kind).insert(instance.name.clone(), made.into());
            }
            Err(fault) => faults.push(fault),
        }
    }
    if !instances.iter().any(|instance| instance.is_sink) {
        let what = "no client measures anything; add a load-generator";
        faults.push(JsonPath::root().at("processing").fault_here(what));
    }
    match faults.is_empty() {
        true => Ok(AdaptedWorkflow { table, ignored }),
        false => Err(faults),
    }
}

/// Adds a source for each input stream that is a local file. Ignores other streams, because an
/// origin without a source serves the built-in film. Returns a fault for each file that cannot be a
/// source.
fn add_sources(workflow: &Value, table: &mut Table, ignored: &mut Vec<String>) -> Vec<NbmpFault> {
    let mut faults = Vec::new();
    let streams = workflow.pointer("/input/media-parameters");
    let streams = streams.and_then(Value::as_array).into_iter().flatten();
    let root = JsonPath::root().at("input").at("media-parameters");
    for (number, stream) in streams.enumerate() {
        let at = root.element(number);
        let url_at = at.at("caching-server-url");
        let file =
            text_field(stream, "caching-server-url").and_then(|url| url.strip_prefix("file:"));
        let name = text_field(stream, "stream-id").map(instances::to_experiment_name);
        let (Some(path), Some(name)) = (file, name) else {
            ignored.push(url_at.fault_here("").path);
            continue;
        };
        match percent_decode(path.strip_prefix("//").unwrap_or(path)) {
            // The command line of the origin contains the path between such quotes.
            Some(path) if !path.contains('\'') => {
                let source = Table::from_iter([("media".to_owned(), path.into())]);
                let sources = child_table(table, "source");
                if sources.insert(name.clone(), source.into()).is_some() {
                    let what = format!("another stream-id also becomes {name}; choose another");
                    faults.push(at.at("stream-id").fault_here(what));
                }
            }
            Some(_) => {
                faults.push(url_at.fault_here("unsupported quote (') in a path; rename the file"))
            }
            None => faults.push(url_at.fault_here("the path is not UTF-8; rename the file")),
        }
    }
    faults
}

/// Builds the experiment's table of an instance, which is a function or a sink.
fn instance_to_table(
    workflow: &Value,
    instance: &FunctionInstance,
    all: &[FunctionInstance],
    table: &Table,
    ignored: &mut Vec<String>,
) -> Result<Table, NbmpFault> {
    let mut made = Table::new();
    made.insert("use".into(), instance.function.into());
    let mut with = Table::new();
    let feeders: Vec<&str> = all
        .iter()
        .filter(|other| instance.fed_by.contains(&other.instance) && !other.is_sink)
        .map(|other| other.name.as_str())
        .collect();
    let source = bound_source(workflow, instance, table);
    let feeder = feeders.first().copied();
    let no_feeder = || {
        let what = "no function of the connection-map feeds this instance; connect one";
        instance.at.fault_here(what)
    };
    let address = || {
        feeder
            .map(|name| format!("{{{name}}}"))
            .ok_or_else(no_feeder)
    };
    let title = film_url_path(table);
    match instance.function {
        "headwater-edge" => insert_text(&mut with, "origin", address()?),
        "headwater-players" => {
            insert_text(
                &mut with,
                "manifest",
                format!("http://{}/{title}/.mpd", address()?),
            );
        }
        "headwater-rate" => {
            insert_text(
                &mut with,
                "target",
                format!("http://{}/{title}/.mpd", address()?),
            );
        }
        "curl" => insert_text(&mut with, "url", format!("http://{}/", address()?)),
        _ => {
            if let Some(source) = &source {
                // Quotes the path, because it is a word of the shell command.
                insert_text(&mut with, "source", format!("'{{{source}}}'"));
            }
        }
    }
    add_parameters(instance, workflow, &mut made, &mut with, ignored);
    made.insert("with".into(), with.into());
    let inputs = feeders.into_iter().map(str::to_owned).chain(source);
    let inputs: Vec<toml::Value> = inputs.map(toml::Value::from).collect();
    made.insert("input".into(), inputs.into());
    if instance.is_sink {
        let measures = default_measurements(instance.function).iter();
        let measures = measures.map(|(name, pointer)| ((*name).to_owned(), (*pointer).into()));
        made.insert("measure".into(), measures.collect::<Table>().into());
    }
    Ok(made)
}

/// Returns the name of the first source to which an input port of the instance is bound.
fn bound_source(workflow: &Value, instance: &FunctionInstance, table: &Table) -> Option<String> {
    let sources = table.get("source").and_then(toml::Value::as_table)?;
    let function = instance.function_restriction(workflow)?;
    let ports = function
        .pointer("/general/input-ports")
        .and_then(Value::as_array)?;
    ports.iter().find_map(|port| {
        let stream = port.pointer("/bind/stream-id").and_then(Value::as_str)?;
        Some(instances::to_experiment_name(stream)).filter(|name| sources.contains_key(name))
    })
}

/// Adds the parameters that the built-in function supports. Adds the paths of all other parameters
/// to `ignored`.
fn add_parameters(
    instance: &FunctionInstance,
    workflow: &Value,
    made: &mut Table,
    with: &mut Table,
    ignored: &mut Vec<String>,
) {
    let Some(function) = instance.function_restriction(workflow) else {
        return;
    };
    let list = function.pointer("/configuration/parameters");
    let at = instance.at.at("configuration").at("parameters");
    for (number, written) in list
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let one = Value::Array(vec![written.clone()]);
        let read = read_parameters(Some(&one)).pop();
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => text.clone(),
            // Writes a whole number without a decimal point, such as `1s` instead of `1.0s`.
            toml::Value::Float(number) => number.to_string(),
            other => other.to_string(),
        };
        match &read {
            Some((name, value @ toml::Value::Integer(_))) if name == "port" => {
                made.insert("port".into(), value.clone());
            }
            Some((name, value)) => match find_parameter_mapping(instance.function, name) {
                Some(known) => {
                    let text = known.text.replace("{}", &quote_word(&text(value)));
                    let before = with.get(known.parameter).and_then(toml::Value::as_str);
                    let joined = match before.filter(|_| known.parameter == "flags") {
                        Some(before) => format!("{before} {text}"),
                        None => text,
                    };
                    insert_text(with, known.parameter, joined);
                }
                None => ignored.push(at.element(number).fault_here("").path),
            },
            None => ignored.push(at.element(number).fault_here("").path),
        }
    }
}

/// Quotes a value for a shell command line, unless the value is a plain word.
fn quote_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+/".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Returns the path of the film in URLs, percent-encoded. If there is exactly one source and its file
/// name contains a dot, the path is this file name. Otherwise, the path is the name of the built-in
/// film.
fn film_url_path(table: &Table) -> String {
    let sources = table.get("source").and_then(toml::Value::as_table);
    let mut paths = sources
        .into_iter()
        .flatten()
        .filter_map(|(_, source)| source.get("media")?.as_str());
    let file = match (paths.next(), paths.next()) {
        (Some(path), None) => path.rsplit('/').next().filter(|name| name.contains('.')),
        _ => None,
    };
    percent_encode(file.unwrap_or("Headwater"))
}

fn insert_text(table: &mut Table, key: &str, text: String) {
    table.insert(key.to_owned(), text.into());
}

/// Returns the table `kind` of the experiment, such as `function`. Creates the table if it does not
/// exist.
fn child_table<'a>(table: &'a mut Table, kind: &str) -> &'a mut Table {
    let empty = || toml::Value::Table(Table::new());
    let child = table.entry(kind).or_insert_with(empty);
    if !child.is_table() {
        *child = empty();
    }
    match child {
        toml::Value::Table(child) => child,
        _ => unreachable!("a table was just inserted"),
    }
}

/// Returns the elements of a list in `processing` with their indexes.
fn enumerate_processing_array<'a>(
    workflow: &'a Value,
    list: &str,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let all = workflow.get("processing").and_then(|of| of.get(list));
    all.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

fn text_field<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

/// Returns the names that an experiment reserves for placeholders.
fn reserved_names() -> BTreeSet<String> {
    let reserved = ["port", "folder", "round", "seed", "part", "parts"];
    reserved.map(str::to_owned).into()
}

#[cfg(test)]
mod tests;
