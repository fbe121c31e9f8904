//! Converts a workflow description to the TOML table of an experiment. Ignores members for which
//! the table has no key, because `overlay.rs` stores these members.

use super::flow_control_fields::{FLOWS, format_in_unit};
use super::parameters::{insert_dotted, read_parameters};
use super::{EXPERIMENT, overlay};
use crate::experiment::built_in_functions;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

/// Accepts any JSON and leaves out unknown members.
pub(super) fn extract_experiment(workflow: &Value) -> Table {
    let mut table = Table::new();
    for (key, field) in [("name", "name"), ("question", "description")] {
        if let Some(text) = nested_member(workflow, "general", field).and_then(Value::as_str) {
            table.insert(key.into(), text.into());
        }
    }
    for stream in nested_elements(workflow, "input", "media-parameters") {
        extract_source(stream, &mut table);
    }
    let joins = PortSources::from_workflow(workflow);
    for function in nested_elements(workflow, "processing", "function-restrictions") {
        match function.get("instance").and_then(Value::as_str) {
            Some(EXPERIMENT) => {
                let parameters = function
                    .get("configuration")
                    .and_then(|c| c.get("parameters"));
                for (name, value) in read_parameters(parameters) {
                    insert_dotted(&mut table, &name, value);
                }
            }
            Some(name) => {
                extract_function(name, function, &joins, &mut table);
            }
            None => {}
        }
    }
    for connection in nested_elements(workflow, "processing", "connection-map") {
        extract_link(connection, &mut table);
    }
    for asserted in nested_elements(workflow, "assertion", "assertion") {
        extract_assertion(asserted, &mut table);
    }
    table
}

fn extract_source(stream: &Value, table: &mut Table) -> Option<()> {
    let name = stream.get("stream-id")?.as_str()?;
    let url = stream.get("caching-server-url")?.as_str()?;
    let (key, text) = match url.split_once(':')? {
        ("file", path) => ("media", path),
        ("make", command) => ("make", command),
        _ => return None,
    };
    let text = percent_decode(text)?;
    insert_table(
        table,
        "source",
        name,
        Table::from_iter([(key.to_owned(), text.into())]),
    )
}

/// Inserts the table `[KIND.NAME]`, unless this table exists already.
fn insert_table(table: &mut Table, kind: &str, name: &str, made: Table) -> Option<()> {
    let empty = || toml::Value::Table(Table::new());
    let all = table.entry(kind).or_insert_with(empty).as_table_mut()?;
    (!all.contains_key(name)).then(|| all.insert(name.into(), made.into()))?;
    Some(())
}

/// The functions and streams that can feed input ports.
struct PortSources<'a> {
    /// Identifiers of the workflow's input streams.
    streams: BTreeSet<&'a str>,
    /// Instances that feed input ports, by the name of the receiving instance and the name of its
    /// port.
    functions: BTreeMap<(&'a str, &'a str), &'a str>,
}

impl<'a> PortSources<'a> {
    fn from_workflow(workflow: &'a Value) -> PortSources<'a> {
        let streams = nested_elements(workflow, "input", "media-parameters");
        let one = |connection: &'a Value| {
            let (from, to) = (connection.get("from")?, connection.get("to")?);
            let text = |end: &'a Value, field: &str| end.get(field)?.as_str();
            let into = (text(to, "instance")?, text(to, "port-name")?);
            Some((into, text(from, "instance")?)).filter(|_| !is_place(from))
        };
        let mut functions = BTreeMap::new();
        for (into, from) in
            nested_elements(workflow, "processing", "connection-map").filter_map(one)
        {
            functions.entry(into).or_insert(from);
        }
        PortSources {
            streams: streams
                .filter_map(|stream| stream.get("stream-id")?.as_str())
                .collect(),
            functions,
        }
    }
}

fn extract_function(
    name: &str,
    function: &Value,
    joins: &PortSources<'_>,
    table: &mut Table,
) -> Option<()> {
    let mut made = Table::new();
    let id = nested_member(function, "general", "id").and_then(Value::as_str)?;
    let role = match built_in_functions().get(id) {
        Some(used) => {
            made.insert("use".into(), id.into());
            used.role.as_str()
        }
        None => id,
    };
    let kind = match role {
        "command" => "function",
        "measure" => "sink",
        _ => return None,
    };
    let inputs = list_inputs(name, function, joins);
    if !inputs.is_empty() {
        made.insert("input".into(), inputs.into());
    }
    let mut measure = Table::new();
    for variable in nested_elements(function, "monitoring", "variable") {
        let text = |field| variable.get(field).and_then(Value::as_str);
        if let (Some(name), Some(definition)) = (text("name"), text("definition")) {
            measure.insert(name.into(), definition.into());
        }
    }
    if kind == "sink" && !measure.is_empty() {
        made.insert("measure".into(), measure.into());
    }
    let parameters = function
        .get("configuration")
        .and_then(|c| c.get("parameters"));
    for (name, value) in read_parameters(parameters) {
        insert_dotted(&mut made, &name, value);
    }
    insert_table(table, kind, name, made)
}

/// Returns the functions and workflow streams that feed the input ports of a function.
fn list_inputs(name: &str, function: &Value, joins: &PortSources<'_>) -> Vec<toml::Value> {
    let one = |port: &Value| -> Option<toml::Value> {
        let own = port.get("port-name")?.as_str()?;
        let joined = joins.functions.get(&(name, own)).copied();
        let bound = nested_member(port, "bind", "stream-id").and_then(Value::as_str);
        let bound = bound.filter(|stream| joins.streams.contains(stream));
        joined.or(bound).map(toml::Value::from)
    };
    nested_elements(function, "general", "input-ports")
        .filter_map(one)
        .collect()
}

/// Returns whether an end of a connection is a place instead of a function instance.
pub(in super::super) fn is_place(end: &Value) -> bool {
    end.get("id").and_then(Value::as_str) == Some("place")
}

fn extract_link(connection: &Value, table: &mut Table) -> Option<()> {
    let name = connection.get("connection-id")?.as_str()?;
    let place = |end| {
        let end = connection.get(end)?;
        let instance = end.get("instance")?.as_str()?.strip_prefix("place.")?;
        is_place(end).then(|| toml::Value::from(instance))
    };
    let mut made = Table::new();
    let between = vec![place("to")?, place("from")?];
    made.insert("between".into(), between.into());
    for known in &FLOWS {
        if let Some(number) =
            nested_member(connection, "flowcontrol", known.field).and_then(Value::as_u64)
        {
            made.insert(known.key.into(), format_in_unit(number, known.units).into());
        }
    }
    for (name, value) in read_parameters(connection.get("other-parameters")) {
        insert_dotted(&mut made, &name, value);
    }
    insert_table(table, "link", name, made)
}

/// Returns whether an assertion can be converted to a bound or an expectation of an experiment.
pub(in super::super) fn is_convertible_assertion(asserted: &Value) -> bool {
    extract_assertion(asserted, &mut Table::new()).is_some()
}

fn extract_assertion(asserted: &Value, table: &mut Table) -> Option<()> {
    let name = asserted.get("name")?.as_str()?;
    let predicate = asserted.get("value-predicate")?;
    let check = predicate.get("check-value")?;
    match predicate.get("evaluation-condition")?.as_str()? {
        "computational" => {
            let bound = check.get("at-most")?.as_str()?;
            let empty = || toml::Value::Table(Table::new());
            let bounds = table.entry("bounds").or_insert_with(empty).as_table_mut()?;
            bounds.entry(name).or_insert_with(|| bound.into());
        }
        "quality" => {
            // Requires a quantity, because every expectation of an experiment has a quantity.
            check.get("quantity")?.as_str()?;
            let mut made = overlay::json_to_toml(check).as_table()?.clone();
            made.insert("that".into(), name.into());
            let empty = || toml::Value::Array(Vec::new());
            let all = table.entry("expect").or_insert_with(empty).as_array_mut()?;
            all.push(made.into());
        }
        _ => return None,
    }
    Some(())
}

fn nested_member<'a>(value: &'a Value, first: &str, second: &str) -> Option<&'a Value> {
    value.get(first)?.get(second)
}

fn nested_elements<'a>(
    value: &'a Value,
    first: &str,
    second: &str,
) -> impl Iterator<Item = &'a Value> {
    nested_member(value, first, second)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Decodes a percent-encoded text (RFC 3986, section 2.1). Returns `None` if the encoding is invalid.
pub(in super::super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                // `u8::from_str_radix` would accept a sign.
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_hexadecimal_digits_follow_a_percent_sign() {
        assert_eq!(percent_decode("a%20b%C3%a4+"), Some("a b\u{e4}+".into()));
        for invalid in ["%+1", "%-1", "% 1", "%1", "%", "%g0", "%ff"] {
            assert_eq!(percent_decode(invalid), None, "{invalid}");
        }
    }
}
