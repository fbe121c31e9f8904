//! What a workflow says beyond what an experiment's table builds, as TOML that is laid over it.
//!
//! Objects are laid over member by member, and arrays whose elements have names element by
//! element, so that the rest is small, and what is changed in the table goes on to count. Words of
//! its own begin with `$`: `$without` (names that are not there), `$by` (the member that names an
//! array's elements), `$order` (of the elements), `$value` (instead of what is there, not over it),
//! `$json` (what TOML cannot say: null, and the largest numbers). Names that begin so have a second.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

const WITHOUT: &str = "$without";
const BY: &str = "$by";
const ORDER: &str = "$order";
const VALUE: &str = "$value";
const JSON: &str = "$json";

/// What names an array's elements, if all have it.
const NAMES: [&str; 6] = [
    "instance",
    "connection-id",
    "stream-id",
    "port-name",
    "name",
    "group-id",
];

/// What must be laid over `base` to have `wanted`; none if it is that already.
pub(super) fn difference(base: &Value, wanted: &Value) -> Option<toml::Value> {
    if base == wanted {
        return None;
    }
    Some(match (base, wanted) {
        (Value::Object(base), Value::Object(map)) => {
            let mut over = Table::new();
            for (name, value) in map {
                let laid = match base.get(name) {
                    Some(base) => difference(base, value),
                    None => Some(encode(value)),
                };
                over.extend(laid.map(|laid| (escaped(name), laid)));
            }
            let gone = base.keys().filter(|name| !map.contains_key(*name));
            without(&mut over, gone);
            over.into()
        }
        (Value::Array(base), Value::Array(list)) => {
            let by = NAMES
                .iter()
                .find_map(|by| Some((*by, names(base, by)?, names(list, by)?)));
            match by {
                Some((by, base_names, names)) if !list.is_empty() => {
                    elements(by, (base, &base_names), (list, &names))
                }
                _ => encode(wanted),
            }
        }
        (Value::Array(_), Value::Object(_)) => word(VALUE, encode(wanted)),
        _ => encode(wanted),
    })
}

fn without<'a>(over: &mut Table, gone: impl Iterator<Item = &'a String>) {
    let gone: Vec<toml::Value> = gone.map(|name| name.as_str().into()).collect();
    if !gone.is_empty() {
        over.insert(WITHOUT.into(), gone.into());
    }
}

fn elements(
    by: &str,
    (base, base_names): (&[Value], &[String]),
    (list, names): (&[Value], &[String]),
) -> toml::Value {
    let before: BTreeMap<&String, &Value> = base_names.iter().zip(base).collect();
    let after: BTreeSet<&String> = names.iter().collect();
    let mut over = Table::new();
    over.insert(BY.into(), by.into());
    for (name, value) in names.iter().zip(list) {
        let laid = match before.get(name) {
            Some(base) => difference(base, value),
            None => Some(encode(value)),
        };
        over.extend(laid.map(|laid| (name.clone(), laid)));
    }
    without(
        &mut over,
        base_names.iter().filter(|name| !after.contains(*name)),
    );
    let mut natural: Vec<&String> = base_names.iter().filter(|n| after.contains(*n)).collect();
    let mut new: Vec<&String> = names.iter().filter(|n| !before.contains_key(*n)).collect();
    new.sort();
    natural.append(&mut new);
    if natural != names.iter().collect::<Vec<_>>() {
        let names = names.iter().map(|name| name.as_str().into());
        over.insert(ORDER.into(), names.collect::<Vec<toml::Value>>().into());
    }
    over.into()
}

/// The names of elements, if each has one of its own.
fn names(list: &[Value], by: &str) -> Option<Vec<String>> {
    let name = |value: &Value| {
        let name = value.get(by)?.as_str()?;
        (!name.starts_with('$')).then(|| name.to_owned())
    };
    let names: Vec<String> = list.iter().map(name).collect::<Option<_>>()?;
    let mut once: Vec<&String> = names.iter().collect();
    once.sort();
    once.dedup();
    (once.len() == names.len()).then_some(names)
}

/// A member's name as a table's.
fn escaped(name: &str) -> String {
    match name.starts_with('$') {
        true => format!("${name}"),
        false => name.to_owned(),
    }
}

/// A table's name as a member's; none of what is a word of ours.
fn member(name: &str) -> Option<&str> {
    match name.strip_prefix('$') {
        Some(rest) => rest.starts_with('$').then_some(rest),
        None => Some(name),
    }
}

/// `base` with this laid over it.
pub(super) fn apply(base: Value, over: &toml::Value) -> Value {
    let whole = |table: &&Table| table.contains_key(JSON) || table.contains_key(VALUE);
    let Some(table) = over.as_table().filter(|table| !whole(table)) else {
        return decode(over);
    };
    match base {
        Value::Object(mut map) => {
            for (name, over) in members(table) {
                let value = match map.remove(name) {
                    Some(base) => apply(base, over),
                    None => decode(over),
                };
                map.insert(name.to_owned(), value);
            }
            texts(table, WITHOUT).for_each(|name| drop(map.remove(name)));
            Value::Object(map)
        }
        Value::Array(list) => match table.get(BY).and_then(toml::Value::as_str) {
            Some(by) => Value::Array(applied(list, by, table)),
            None => decode(over),
        },
        _ => decode(over),
    }
}

fn applied(list: Vec<Value>, by: &str, table: &Table) -> Vec<Value> {
    let name = |value: &Value| value.get(by).and_then(Value::as_str).map(str::to_owned);
    let mut overs: BTreeMap<&str, &toml::Value> = members(table).collect();
    let gone: BTreeSet<&str> = texts(table, WITHOUT).collect();
    let mut all = Vec::new();
    for value in list {
        let own = name(&value);
        if own.as_deref().is_some_and(|own| gone.contains(own)) {
            continue;
        }
        let over = own.as_deref().and_then(|own| overs.remove(own));
        all.push(match over {
            Some(over) => apply(value, over),
            None => value,
        });
    }
    for (name, over) in overs {
        let mut value = decode(over);
        if let Value::Object(map) = &mut value {
            map.entry(by).or_insert_with(|| name.into());
        }
        all.push(value);
    }
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, name) in texts(table, ORDER).enumerate() {
        order.entry(name).or_insert(place);
    }
    if !order.is_empty() {
        let place = |value: &Value| {
            let own = name(value);
            let at = own.as_deref().and_then(|own| order.get(own));
            at.copied().unwrap_or(usize::MAX)
        };
        all.sort_by_cached_key(place);
    }
    all
}

/// What a table says of members.
fn members(table: &Table) -> impl Iterator<Item = (&str, &toml::Value)> {
    table
        .iter()
        .filter_map(|(name, value)| Some((member(name)?, value)))
}

fn texts<'a>(table: &'a Table, name: &str) -> impl Iterator<Item = &'a str> {
    let list = table.get(name).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_str)
}

/// JSON as TOML.
pub(super) fn encode(value: &Value) -> toml::Value {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => list.iter().map(encode).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(name, value)| (escaped(name), encode(value)));
            members.collect::<Table>().into()
        }
        Value::Number(number) => match (number.as_i64(), number.is_f64()) {
            (Some(whole), _) => whole.into(),
            (None, true) => number.as_f64().unwrap_or_default().into(),
            _ => as_json(value),
        },
        _ => as_json(value),
    }
}

fn as_json(value: &Value) -> toml::Value {
    word(JSON, value.to_string().into())
}

fn word(word: &str, value: toml::Value) -> toml::Value {
    Table::from_iter([(word.to_owned(), value)]).into()
}

/// TOML as JSON: [`encode`] undone. What JSON cannot say is its TOML as a text.
pub(super) fn decode(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) if number.is_finite() => (*number).into(),
        toml::Value::Float(_) | toml::Value::Datetime(_) => value.to_string().into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Array(list) => list.iter().map(decode).collect(),
        toml::Value::Table(table) => {
            if let Some(text) = table.get(JSON).and_then(toml::Value::as_str) {
                return super::super::read(text.as_bytes()).unwrap_or_default();
            }
            match table.get(VALUE) {
                Some(value) => decode(value),
                None => members(table)
                    .map(|(name, value)| (name.to_owned(), decode(value)))
                    .collect(),
            }
        }
    }
}
