//! An experiment's table from a workflow description: all of it that an experiment has words for.

use super::super::functions;
use super::flow::{FLOWS, quantity};
use super::parameters::{insert, take};
use super::{EXPERIMENT, rest};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

/// Any JSON: what is not understood is left.
pub(super) fn extract(workflow: &Value) -> Table {
    let mut table = Table::new();
    for (key, field) in [("name", "name"), ("question", "description")] {
        if let Some(text) = at(workflow, "general", field).and_then(Value::as_str) {
            table.insert(key.into(), text.into());
        }
    }
    for stream in list(workflow, "input", "media-parameters") {
        source(stream, &mut table);
    }
    let joins = Joins::of(workflow);
    for function in list(workflow, "processing", "function-restrictions") {
        match function.get("instance").and_then(Value::as_str) {
            Some(EXPERIMENT) => {
                let parameters = function
                    .get("configuration")
                    .and_then(|c| c.get("parameters"));
                for (name, value) in take(parameters) {
                    insert(&mut table, &name, value);
                }
            }
            Some(name) => {
                restriction(name, function, &joins, &mut table);
            }
            None => {}
        }
    }
    for connection in list(workflow, "processing", "connection-map") {
        link(connection, &mut table);
    }
    for asserted in list(workflow, "assertion", "assertion") {
        assertion(asserted, &mut table);
    }
    table
}

fn source(stream: &Value, table: &mut Table) -> Option<()> {
    let name = stream.get("stream-id")?.as_str()?;
    let url = stream.get("caching-server-url")?.as_str()?;
    let (key, text) = match url.split_once(':')? {
        ("file", path) => ("media", path),
        ("make", command) => ("make", command),
        _ => return None,
    };
    let text = unescaped(text)?;
    add(
        table,
        "source",
        name,
        Table::from_iter([(key.to_owned(), text.into())]),
    )
}

/// `NAME` of `KIND`, if there is none yet.
fn add(table: &mut Table, kind: &str, name: &str, made: Table) -> Option<()> {
    let empty = || toml::Value::Table(Table::new());
    let all = table.entry(kind).or_insert_with(empty).as_table_mut()?;
    (!all.contains_key(name)).then(|| all.insert(name.into(), made.into()))?;
    Some(())
}

/// What ports may be joined to.
struct Joins<'a> {
    /// The workflow's own.
    streams: BTreeSet<&'a str>,
    /// What function comes in, by the function and the port that it comes to.
    functions: BTreeMap<(&'a str, &'a str), &'a str>,
}

impl<'a> Joins<'a> {
    fn of(workflow: &'a Value) -> Joins<'a> {
        let streams = list(workflow, "input", "media-parameters");
        let one = |connection: &'a Value| {
            let (from, to) = (connection.get("from")?, connection.get("to")?);
            let text = |end: &'a Value, field: &str| end.get(field)?.as_str();
            let into = (text(to, "instance")?, text(to, "port-name")?);
            Some((into, text(from, "instance")?)).filter(|_| !is_place(from))
        };
        let mut functions = BTreeMap::new();
        for (into, from) in list(workflow, "processing", "connection-map").filter_map(one) {
            functions.entry(into).or_insert(from);
        }
        Joins {
            streams: streams
                .filter_map(|stream| stream.get("stream-id")?.as_str())
                .collect(),
            functions,
        }
    }
}

fn restriction(name: &str, function: &Value, joins: &Joins<'_>, table: &mut Table) -> Option<()> {
    let mut made = Table::new();
    let id = at(function, "general", "id").and_then(Value::as_str)?;
    let role = match functions::built_in().get(id) {
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
    let inputs = inputs(name, function, joins);
    if !inputs.is_empty() {
        made.insert("input".into(), inputs.into());
    }
    let mut measure = Table::new();
    for variable in list(function, "monitoring", "variable") {
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
    for (name, value) in take(parameters) {
        insert(&mut made, &name, value);
    }
    add(table, kind, name, made)
}

/// What a function's ports are joined to: functions, or the workflow's own streams.
fn inputs(name: &str, function: &Value, joins: &Joins<'_>) -> Vec<toml::Value> {
    let one = |port: &Value| -> Option<toml::Value> {
        let own = port.get("port-name")?.as_str()?;
        let joined = joins.functions.get(&(name, own)).copied();
        let bound = at(port, "bind", "stream-id").and_then(Value::as_str);
        let bound = bound.filter(|stream| joins.streams.contains(stream));
        joined.or(bound).map(toml::Value::from)
    };
    list(function, "general", "input-ports")
        .filter_map(one)
        .collect()
}

/// The end of a link, and of no function.
pub(in super::super) fn is_place(end: &Value) -> bool {
    end.get("id").and_then(Value::as_str) == Some("place")
}

fn link(connection: &Value, table: &mut Table) -> Option<()> {
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
        if let Some(number) = at(connection, "flowcontrol", known.field).and_then(Value::as_u64) {
            made.insert(known.key.into(), quantity(number, known.units).into());
        }
    }
    for (name, value) in take(connection.get("other-parameters")) {
        insert(&mut made, &name, value);
    }
    add(table, "link", name, made)
}

/// Whether an assertion is a bound or an expectation of ours.
pub(in super::super) fn is_understood(asserted: &Value) -> bool {
    assertion(asserted, &mut Table::new()).is_some()
}

fn assertion(asserted: &Value, table: &mut Table) -> Option<()> {
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
            // Ours speak of a quantity.
            check.get("quantity")?.as_str()?;
            let mut made = rest::encode(check).as_table()?.clone();
            made.insert("that".into(), name.into());
            let empty = || toml::Value::Array(Vec::new());
            let all = table.entry("expect").or_insert_with(empty).as_array_mut()?;
            all.push(made.into());
        }
        _ => return None,
    }
    Some(())
}

fn at<'a>(value: &'a Value, first: &str, second: &str) -> Option<&'a Value> {
    value.get(first)?.get(second)
}

fn list<'a>(value: &'a Value, first: &str, second: &str) -> impl Iterator<Item = &'a Value> {
    at(value, first, second)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// A URI's text; none where it is no text.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
