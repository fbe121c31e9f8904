//! Converts TOML values to NBMP parameters. NBMP parameters have no field for a value, so a value
//! is stored as a restriction that permits only this value.
//!
//! For a text, `restrictions` contains that text. For a number, `restrictions` is a range that
//! contains only that number. For a list, the restrictions permit every value of the list. The
//! member `values[].name` states the form of the parameter. It is `value` for a single value,
//! `values` for a list, and `toml` for any other value, which is stored as TOML text. A table
//! becomes one parameter for each entry, with the name `TABLE.KEY`.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use toml::Table;

/// Escape sequences for percent signs and dots in keys. An unescaped dot separates nested keys.
const ESCAPES: [(char, &str); 2] = [('%', "%25"), ('.', "%2E")];
/// Maximum nesting depth of a dotted name. TOML parsers reject more than 80 levels. The limit also
/// bounds the depth of the recursive functions that visit tables.
const DEPTH_MAX: usize = 64;

/// Converts all entries of a table to NBMP parameters.
pub(super) fn to_parameters(table: &Table) -> Vec<Value> {
    let mut list = Vec::new();
    for (key, value) in table {
        push_parameter(&mut list, &escape_key(key), value);
    }
    list
}

/// Adds a value as one parameter, or the entries of a table as separate parameters.
fn push_parameter(list: &mut Vec<Value>, name: &str, value: &toml::Value) {
    match value {
        toml::Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                push_parameter(list, &format!("{name}.{}", escape_key(key)), value);
            }
        }
        value => {
            let (datatype, marker, restrictions) = to_restrictions(value);
            let restrictions = restrictions.into_iter().zip(1..);
            let values: Vec<Value> = restrictions
                .map(|(admitted, id)| json!({"name": marker, "id": id, "restrictions": admitted}))
                .collect();
            let id = list.len() + 1;
            list.push(json!({"name": name, "id": id, "datatype": datatype, "values": values}));
        }
    }
}

/// Returns the datatype, the form and the restrictions of a value.
fn to_restrictions(value: &toml::Value) -> (&'static str, &'static str, Vec<Value>) {
    if let Some((datatype, restrictions)) = restrict_to_scalar(value) {
        return (datatype, "value", vec![restrictions]);
    }
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let scalars: Option<Vec<_>> = list.iter().map(restrict_to_scalar).collect();
    if let Some(scalars) = scalars.filter(|all| !all.is_empty()) {
        let types: BTreeSet<_> = scalars.iter().map(|(datatype, _)| *datatype).collect();
        let texts: BTreeSet<_> = list.iter().filter_map(toml::Value::as_str).collect();
        let single = types.first().copied().filter(|_| types.len() == 1);
        match single {
            // Stores a list of texts in a single restriction if the texts are unique, and otherwise
            // as TOML text.
            Some("string") if texts.len() == list.len() => {
                let texts: Vec<_> = list.iter().filter_map(toml::Value::as_str).collect();
                return ("string", "values", vec![json!(texts)]);
            }
            Some(datatype) if datatype != "string" => {
                let all = scalars.into_iter().map(|(_, restrictions)| restrictions);
                return (datatype, "values", all.collect());
            }
            _ => {}
        }
    }
    ("string", "toml", vec![json!([value.to_string()])])
}

fn restrict_to_scalar(value: &toml::Value) -> Option<(&'static str, Value)> {
    Some(match value {
        toml::Value::String(text) => ("string", json!([text])),
        toml::Value::Integer(n) => ("integer", json!({"min-value": n, "max-value": n})),
        toml::Value::Float(n) if survives_json(*n) => {
            ("number", json!({"min-value": n, "max-value": n}))
        }
        toml::Value::Boolean(truth) => ("boolean", json!(truth)),
        _ => return None,
    })
}

/// Returns whether a round trip through JSON preserves a number exactly.
fn survives_json(number: f64) -> bool {
    serde_json::from_str(&json!(number).to_string()).is_ok_and(|again: f64| again == number)
}

/// Returns the names and values of parameters. Ignores parameters whose permitted values cannot be
/// listed.
pub(in super::super) fn read_parameters(parameters: Option<&Value>) -> Vec<(String, toml::Value)> {
    let list = parameters.and_then(Value::as_array).into_iter().flatten();
    let one = |parameter: &Value| {
        let name = parameter.get("name")?.as_str()?.to_owned();
        Some((name, parameter_value(parameter)?))
    };
    list.filter_map(one).collect()
}

fn parameter_value(parameter: &Value) -> Option<toml::Value> {
    let datatype = parameter.get("datatype")?.as_str()?;
    let values = parameter.get("values")?.as_array()?;
    let marker = values.first()?.get("name").and_then(Value::as_str);
    let mut all = Vec::new();
    for value in values {
        all.extend(list_permitted_values(datatype, value.get("restrictions")?)?);
    }
    match marker {
        Some("toml") => {
            let text = all.first()?.as_str()?;
            let table: Table = toml::from_str(&format!("x = {text}")).ok()?;
            table.into_iter().next().map(|(_, value)| value)
        }
        Some("values") => Some(toml::Value::Array(all)),
        _ if all.len() == 1 => all.pop(),
        _ => Some(toml::Value::Array(all)),
    }
}

/// Returns the values that a restriction permits. Returns `None` if the restriction does not list
/// single values.
fn list_permitted_values(datatype: &str, restrictions: &Value) -> Option<Vec<toml::Value>> {
    let bounds = || -> Option<&Value> {
        let (least, most) = (
            restrictions.get("min-value")?,
            restrictions.get("max-value")?,
        );
        (least == most).then_some(least)
    };
    Some(match datatype {
        "string" => {
            let texts = restrictions.as_array()?.iter();
            let texts: Option<Vec<_>> = texts.map(|text| Some(text.as_str()?.into())).collect();
            texts?
        }
        "boolean" => vec![restrictions.as_bool()?.into()],
        "integer" => vec![bounds()?.as_i64()?.into()],
        "number" => vec![bounds()?.as_f64()?.into()],
        _ => return None,
    })
}

/// Inserts a value into nested tables by its dotted name. Returns false if another value occupies
/// the key or one of its parents, or if the name has too many levels.
pub(super) fn insert_dotted(table: &mut Table, name: &str, value: toml::Value) -> bool {
    name.matches('.').count() < DEPTH_MAX && insert_nested(table, name, value)
}

fn insert_nested(table: &mut Table, name: &str, value: toml::Value) -> bool {
    match name.split_once('.') {
        None => {
            let key = unescape_key(name);
            let free = !table.contains_key(&key);
            if free {
                table.insert(key, value);
            }
            free
        }
        Some((first, rest)) => {
            let empty = || toml::Value::Table(Table::new());
            let inner = table.entry(unescape_key(first)).or_insert_with(empty);
            inner
                .as_table_mut()
                .is_some_and(|inner| insert_nested(inner, rest, value))
        }
    }
}

fn escape_key(key: &str) -> String {
    ESCAPES
        .iter()
        .fold(key.to_owned(), |key, (plain, escaped)| {
            key.replace(*plain, escaped)
        })
}

fn unescape_key(key: &str) -> String {
    let plain =
        |key: String, (plain, escaped): &(char, &str)| key.replace(escaped, &plain.to_string());
    ESCAPES.iter().rev().fold(key.to_owned(), plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_survives_a_round_trip() {
        let table: Table = toml::from_str(
            "text = ''\ntexts = ['a', 'b']\none = ['a']\ntwice = ['a', 'a']\nn = -7\nns = [1, 2, 1]\n\
             x = 1.0\nxs = [0.5, 1e300]\nends = [inf, -inf]\nyes = true\nboth = [true, false]\n\
             mixed = [1, 'a', [2]]\nnone = []\nday = 2026-11-21\nempty = {}\n\
             list = [{ a = 1 }]\n'a.b%2E' = { 'c.d' = 1, e = { f = 'x' } }",
        )
        .unwrap();
        let mut list = Vec::new();
        for (key, value) in &table {
            push_parameter(&mut list, &escape_key(key), value);
        }
        let list = Value::Array(list);
        let mut again = Table::new();
        for (name, value) in read_parameters(Some(&list)) {
            assert!(insert_dotted(&mut again, &name, value), "{name}");
        }
        assert_eq!(again, table);
    }

    #[test]
    fn a_name_with_many_dots_is_not_split() {
        let mut table = Table::new();
        assert!(!insert_dotted(
            &mut table,
            &".".repeat(1 << 20),
            true.into()
        ));
        assert!(table.is_empty());
        assert!(insert_dotted(
            &mut table,
            &".".repeat(DEPTH_MAX - 1),
            true.into()
        ));
    }
}
