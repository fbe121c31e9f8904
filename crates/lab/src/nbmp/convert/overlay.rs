//! A TOML overlay with the differences between a given workflow and the workflow that is built from
//! an experiment's table.
//!
//! Objects are overlaid member by member, and arrays of named elements are overlaid element by
//! element. Therefore, the overlay is small, and it does not undo later changes of the table. Keys
//! with a special meaning start with `$`:
//!
//! - `$without` lists removed names.
//! - `$by` states the member that names the elements of an array.
//! - `$order` lists the names of the elements in the required order.
//! - `$value` contains a value that replaces the old value completely.
//! - `$json` contains the JSON text of a value that TOML cannot represent. Such a value is null or
//!   an integer above `i64::MAX`.
//!
//! If a member's name starts with `$`, its key in the overlay starts with `$$`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

const WITHOUT: &str = "$without";
const BY: &str = "$by";
const ORDER: &str = "$order";
const VALUE: &str = "$value";
const JSON: &str = "$json";

/// Members that can name the elements of an array. The overlay uses the first of these members that
/// every element has and whose values are unique.
const NAMES: [&str; 6] = [
    "instance",
    "connection-id",
    "stream-id",
    "port-name",
    "name",
    "group-id",
];

/// Returns the overlay that turns `base` into `wanted`. Returns `None` if `base` equals `wanted`.
pub(super) fn compute_overlay(base: &Value, wanted: &Value) -> Option<toml::Value> {
    if base == wanted {
        return None;
    }
    Some(match (base, wanted) {
        (Value::Object(base), Value::Object(map)) => {
            let mut over = Table::new();
            for (name, value) in map {
                let difference = match base.get(name) {
                    Some(base) => compute_overlay(base, value),
                    None => Some(json_to_toml(value)),
                };
                over.extend(difference.map(|difference| (escape_overlay_key(name), difference)));
            }
            let removed = base.keys().filter(|name| !map.contains_key(*name));
            insert_removed_names(&mut over, removed);
            over.into()
        }
        (Value::Array(base), Value::Array(list)) => {
            let by = NAMES
                .iter()
                .find_map(|by| Some((*by, element_names(base, by)?, element_names(list, by)?)));
            match by {
                Some((by, base_names, names)) if !list.is_empty() => {
                    diff_elements(by, (base, &base_names), (list, &names))
                }
                _ => json_to_toml(wanted),
            }
        }
        (Value::Array(_), Value::Object(_)) => single_entry_table(VALUE, json_to_toml(wanted)),
        _ => json_to_toml(wanted),
    })
}

fn insert_removed_names<'a>(over: &mut Table, removed: impl Iterator<Item = &'a String>) {
    let removed: Vec<toml::Value> = removed.map(|name| name.as_str().into()).collect();
    if !removed.is_empty() {
        over.insert(WITHOUT.into(), removed.into());
    }
}

fn diff_elements(
    by: &str,
    (base, base_names): (&[Value], &[String]),
    (list, names): (&[Value], &[String]),
) -> toml::Value {
    let before: BTreeMap<&String, &Value> = base_names.iter().zip(base).collect();
    let after: BTreeSet<&String> = names.iter().collect();
    let mut over = Table::new();
    over.insert(BY.into(), by.into());
    for (name, value) in names.iter().zip(list) {
        let difference = match before.get(name) {
            Some(base) => compute_overlay(base, value),
            None => Some(json_to_toml(value)),
        };
        over.extend(difference.map(|difference| (name.clone(), difference)));
    }
    insert_removed_names(
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

/// Returns the names of all elements. Returns `None` if a name is missing, occurs twice, or starts
/// with `$`.
fn element_names(list: &[Value], by: &str) -> Option<Vec<String>> {
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

/// Converts a member's name to a key of the overlay.
fn escape_overlay_key(name: &str) -> String {
    match name.starts_with('$') {
        true => format!("${name}"),
        false => name.to_owned(),
    }
}

/// Converts a key of the overlay to a member's name. Returns `None` for a key with a special
/// meaning, such as `$without`.
fn unescape_overlay_key(name: &str) -> Option<&str> {
    match name.strip_prefix('$') {
        Some(rest) => rest.starts_with('$').then_some(rest),
        None => Some(name),
    }
}

/// Applies an overlay to `base` and returns the result.
pub(super) fn apply_overlay(base: Value, over: &toml::Value) -> Value {
    let whole = |table: &&Table| table.contains_key(JSON) || table.contains_key(VALUE);
    let Some(table) = over.as_table().filter(|table| !whole(table)) else {
        return toml_to_json(over);
    };
    match base {
        Value::Object(mut map) => {
            for (name, over) in member_overlays(table) {
                let value = match map.remove(name) {
                    Some(base) => apply_overlay(base, over),
                    None => toml_to_json(over),
                };
                map.insert(name.to_owned(), value);
            }
            list_texts(table, WITHOUT).for_each(|name| drop(map.remove(name)));
            Value::Object(map)
        }
        Value::Array(list) => match table.get(BY).and_then(toml::Value::as_str) {
            Some(by) => Value::Array(apply_overlay_to_elements(list, by, table)),
            None => toml_to_json(over),
        },
        _ => toml_to_json(over),
    }
}

fn apply_overlay_to_elements(list: Vec<Value>, by: &str, table: &Table) -> Vec<Value> {
    let name = |value: &Value| value.get(by).and_then(Value::as_str).map(str::to_owned);
    let mut overs: BTreeMap<&str, &toml::Value> = member_overlays(table).collect();
    let removed: BTreeSet<&str> = list_texts(table, WITHOUT).collect();
    let mut all = Vec::new();
    for value in list {
        let element_name = name(&value);
        if element_name
            .as_deref()
            .is_some_and(|element_name| removed.contains(element_name))
        {
            continue;
        }
        let over = element_name
            .as_deref()
            .and_then(|element_name| overs.remove(element_name));
        all.push(match over {
            Some(over) => apply_overlay(value, over),
            None => value,
        });
    }
    for (name, over) in overs {
        let mut value = toml_to_json(over);
        if let Value::Object(map) = &mut value {
            map.entry(by).or_insert_with(|| name.into());
        }
        all.push(value);
    }
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, name) in list_texts(table, ORDER).enumerate() {
        order.entry(name).or_insert(place);
    }
    if !order.is_empty() {
        let place = |value: &Value| {
            let element_name = name(value);
            let at = element_name
                .as_deref()
                .and_then(|element_name| order.get(element_name));
            at.copied().unwrap_or(usize::MAX)
        };
        all.sort_by_cached_key(place);
    }
    all
}

/// Returns the entries of an overlay table, except keys with a special meaning.
fn member_overlays(table: &Table) -> impl Iterator<Item = (&str, &toml::Value)> {
    table
        .iter()
        .filter_map(|(name, value)| Some((unescape_overlay_key(name)?, value)))
}

fn list_texts<'a>(table: &'a Table, name: &str) -> impl Iterator<Item = &'a str> {
    let list = table.get(name).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_str)
}

/// Converts JSON to TOML.
pub(super) fn json_to_toml(value: &Value) -> toml::Value {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => list.iter().map(json_to_toml).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(name, value)| (escape_overlay_key(name), json_to_toml(value)));
            members.collect::<Table>().into()
        }
        Value::Number(number) => match (number.as_i64(), number.is_f64()) {
            (Some(whole), _) => whole.into(),
            (None, true) => number.as_f64().unwrap_or_default().into(),
            _ => embed_as_json_text(value),
        },
        _ => embed_as_json_text(value),
    }
}

fn embed_as_json_text(value: &Value) -> toml::Value {
    single_entry_table(JSON, value.to_string().into())
}

fn single_entry_table(word: &str, value: toml::Value) -> toml::Value {
    Table::from_iter([(word.to_owned(), value)]).into()
}

/// Converts TOML to JSON. This is the inverse of [`json_to_toml`]. A value that JSON cannot
/// represent, such as a date, becomes a string that contains the TOML text of the value.
pub(super) fn toml_to_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) if number.is_finite() => (*number).into(),
        toml::Value::Float(_) | toml::Value::Datetime(_) => value.to_string().into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Array(list) => list.iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => {
            if let Some(text) = table.get(JSON).and_then(toml::Value::as_str) {
                return super::super::parse_bounded_json(text.as_bytes()).unwrap_or_default();
            }
            match table.get(VALUE) {
                Some(value) => toml_to_json(value),
                None => member_overlays(table)
                    .map(|(name, value)| (name.to_owned(), toml_to_json(value)))
                    .collect(),
            }
        }
    }
}
