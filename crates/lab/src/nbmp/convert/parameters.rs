//! TOML's values as NBMP's parameters, which have no plain value: a value is the only one that is
//! admitted.
//!
//! A text is a `restrictions` of one text, a number a range of one number; of a list, all its
//! values are admitted. The `name` of what is admitted says which it is: `value`, `values`, or
//! `toml` for what has no such form, and stands there as TOML. A table's entries have its name and
//! a dot before theirs.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use toml::Table;

/// Of a table's names: a dot in a name, and what escapes it.
const ESCAPES: [(char, &str); 2] = [('%', "%25"), ('.', "%2E")];
/// Tables within each other that a name may make. Readers of TOML end at 80, and whoever walks the
/// tables goes into each.
const DEPTH_MAX: usize = 64;

/// All of a table.
pub(super) fn parameters(table: &Table) -> Vec<Value> {
    let mut list = Vec::new();
    for (key, value) in table {
        put(&mut list, &escaped(key), value);
    }
    list
}

/// Adds what `name` is, as one parameter or, of a table, several.
fn put(list: &mut Vec<Value>, name: &str, value: &toml::Value) {
    match value {
        toml::Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                put(list, &format!("{name}.{}", escaped(key)), value);
            }
        }
        value => {
            let (datatype, marker, restrictions) = admitted(value);
            let restrictions = restrictions.into_iter().zip(1..);
            let values: Vec<Value> = restrictions
                .map(|(admitted, id)| json!({"name": marker, "id": id, "restrictions": admitted}))
                .collect();
            let id = list.len() + 1;
            list.push(json!({"name": name, "id": id, "datatype": datatype, "values": values}));
        }
    }
}

/// A value's datatype, how it is marked, and what is admitted.
fn admitted(value: &toml::Value) -> (&'static str, &'static str, Vec<Value>) {
    if let Some((datatype, restrictions)) = scalar(value) {
        return (datatype, "value", vec![restrictions]);
    }
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let scalars: Option<Vec<_>> = list.iter().map(scalar).collect();
    if let Some(scalars) = scalars.filter(|all| !all.is_empty()) {
        let types: BTreeSet<_> = scalars.iter().map(|(datatype, _)| *datatype).collect();
        let texts: BTreeSet<_> = list.iter().filter_map(toml::Value::as_str).collect();
        let single = types.first().copied().filter(|_| types.len() == 1);
        match single {
            // All in one, and then each once.
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

fn scalar(value: &toml::Value) -> Option<(&'static str, Value)> {
    Some(match value {
        toml::Value::String(text) => ("string", json!([text])),
        toml::Value::Integer(n) => ("integer", json!({"min-value": n, "max-value": n})),
        toml::Value::Float(n) if survives(*n) => {
            ("number", json!({"min-value": n, "max-value": n}))
        }
        toml::Value::Boolean(truth) => ("boolean", json!(truth)),
        _ => return None,
    })
}

/// Whether JSON's text of a number is read as the same again, to the last bit.
fn survives(number: f64) -> bool {
    serde_json::from_str(&json!(number).to_string()).is_ok_and(|again: f64| again == number)
}

/// What parameters say, by name; what they do not say in one of the forms above is left out.
pub(super) fn take(parameters: Option<&Value>) -> Vec<(String, toml::Value)> {
    let list = parameters.and_then(Value::as_array).into_iter().flatten();
    let one = |parameter: &Value| {
        let name = parameter.get("name")?.as_str()?.to_owned();
        Some((name, value(parameter)?))
    };
    list.filter_map(one).collect()
}

fn value(parameter: &Value) -> Option<toml::Value> {
    let datatype = parameter.get("datatype")?.as_str()?;
    let values = parameter.get("values")?.as_array()?;
    let marker = values.first()?.get("name").and_then(Value::as_str);
    let mut all = Vec::new();
    for value in values {
        all.extend(single(datatype, value.get("restrictions")?)?);
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

/// What these restrictions admit; none where that is more than can be listed.
fn single(datatype: &str, restrictions: &Value) -> Option<Vec<toml::Value>> {
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

/// Puts a value where its dotted name says; false where something else is in the way, or where that
/// is too deep.
pub(super) fn insert(table: &mut Table, name: &str, value: toml::Value) -> bool {
    name.matches('.').count() < DEPTH_MAX && within(table, name, value)
}

fn within(table: &mut Table, name: &str, value: toml::Value) -> bool {
    match name.split_once('.') {
        None => {
            let key = plain(name);
            let free = !table.contains_key(&key);
            if free {
                table.insert(key, value);
            }
            free
        }
        Some((first, rest)) => {
            let empty = || toml::Value::Table(Table::new());
            let inner = table.entry(plain(first)).or_insert_with(empty);
            inner
                .as_table_mut()
                .is_some_and(|inner| within(inner, rest, value))
        }
    }
}

fn escaped(key: &str) -> String {
    ESCAPES
        .iter()
        .fold(key.to_owned(), |key, (plain, escaped)| {
            key.replace(*plain, escaped)
        })
}

fn plain(key: &str) -> String {
    let plain =
        |key: String, (plain, escaped): &(char, &str)| key.replace(escaped, &plain.to_string());
    ESCAPES.iter().rev().fold(key.to_owned(), plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back() {
        let table: Table = toml::from_str(
            "text = ''\ntexts = ['a', 'b']\none = ['a']\ntwice = ['a', 'a']\nn = -7\nns = [1, 2, 1]\n\
             x = 1.0\nxs = [0.5, 1e300]\nends = [inf, -inf]\nyes = true\nboth = [true, false]\n\
             mixed = [1, 'a', [2]]\nnone = []\nday = 2026-11-21\nempty = {}\n\
             list = [{ a = 1 }]\n'a.b%2E' = { 'c.d' = 1, e = { f = 'x' } }",
        )
        .unwrap();
        let mut list = Vec::new();
        for (key, value) in &table {
            put(&mut list, &escaped(key), value);
        }
        let list = Value::Array(list);
        let mut again = Table::new();
        for (name, value) in take(Some(&list)) {
            assert!(insert(&mut again, &name, value), "{name}");
        }
        assert_eq!(again, table);
    }

    #[test]
    fn a_name_of_many_dots_is_left_alone() {
        let mut table = Table::new();
        assert!(!insert(&mut table, &".".repeat(1 << 20), true.into()));
        assert!(table.is_empty());
        assert!(insert(&mut table, &".".repeat(DEPTH_MAX - 1), true.into()));
    }
}
