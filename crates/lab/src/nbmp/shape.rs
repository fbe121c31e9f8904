//! What a field may hold, said as data, and one walk that holds documents to it.

use super::Level;
use super::path::{Offence, Place};
use super::words::{closest, kind_of, list};
use serde_json::{Map, Value};

/// A field of an object.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) need: Need,
    pub(super) shape: Shape,
}

/// Who must write a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Everybody.
    Must,
    /// Whoever keeps to the standard; documents that are in use do without.
    Strict,
    /// Nobody.
    May,
}

/// Adds what is wrong among a value's members.
pub(super) type Among = fn(&Value, &Place, &mut Vec<Offence>);

/// What a field may hold.
pub(super) enum Shape {
    Text,
    /// A text that is not empty.
    Name,
    OneOf(&'static [&'static str]),
    /// A text of a form, at either level: the test, and its words.
    Form(fn(&str) -> bool, &'static str),
    /// The same, of whoever keeps to the standard.
    StrictForm(fn(&str) -> bool, &'static str),
    /// A whole number that is not less.
    Count(i64),
    Whole,
    Number,
    Truth,
    /// An array; the standard's least length, which documents in use do not keep to.
    List(&'static Shape, usize),
    /// Behind two references, so that descriptors may hold each other.
    Object(&'static &'static [Field]),
    /// Any object.
    Free,
    Any,
    /// A shape, and what must hold among its members besides.
    And(&'static Shape, Among),
}

impl Shape {
    /// What is expected, in words.
    fn words(&self) -> String {
        match self {
            Shape::Text => "a text".into(),
            Shape::Name => "a text that is not empty".into(),
            Shape::OneOf(all) => format!("one of {}", list(all)),
            Shape::Form(_, words) | Shape::StrictForm(_, words) => (*words).into(),
            Shape::And(shape, _) => shape.words(),
            Shape::Count(least) => format!("a whole number from {least}"),
            Shape::Whole => "a whole number".into(),
            Shape::Number => "a number".into(),
            Shape::Truth => "true or false".into(),
            Shape::List(shape, _) => format!("an array, each of it {}", shape.words()),
            Shape::Object(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                format!("an object of {}", list(&names))
            }
            Shape::Free => "an object".into(),
            Shape::Any => "a value".into(),
        }
    }

    /// Adds what is wrong in a value.
    pub(super) fn hold(&self, value: &Value, level: Level, at: &Place, found: &mut Vec<Offence>) {
        let fits = match (self, value) {
            (Shape::Object(fields), Value::Object(map)) => {
                return members(fields, map, level, at, found);
            }
            (Shape::List(shape, least), Value::Array(values)) => {
                if level == Level::Strict && values.len() < *least {
                    found.push(at.offence(format!("it is empty; add {}", shape.words())));
                }
                let each = values.iter().enumerate();
                return each.for_each(|(n, value)| shape.hold(value, level, &at.nth(n), found));
            }
            (Shape::And(shape, among), value) => {
                shape.hold(value, level, at, found);
                return among(value, at, found);
            }
            (Shape::Text, Value::String(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::Truth, Value::Bool(_))
            | (Shape::Free, Value::Object(_))
            | (Shape::Any, _) => true,
            (Shape::Name, Value::String(text)) => !text.trim().is_empty(),
            (Shape::OneOf(all), Value::String(text)) => all.contains(&text.as_str()),
            (Shape::Form(test, _), Value::String(text)) => test(text),
            (Shape::StrictForm(test, _), Value::String(text)) => level == Level::Lax || test(text),
            (Shape::Count(least), value) => match (value.as_i64(), value.as_u64()) {
                (Some(number), _) => number >= *least,
                (None, beyond) => beyond.is_some(),
            },
            (Shape::Whole, value) => value.is_i64() || value.is_u64(),
            _ => false,
        };
        if !fits {
            found.push(at.offence(format!("{}; write {}", kind_of(value), self.words())));
        }
    }
}

fn members(
    fields: &[Field],
    map: &Map<String, Value>,
    level: Level,
    at: &Place,
    found: &mut Vec<Offence>,
) {
    for field in fields {
        let needed = match field.need {
            Need::Must => true,
            Need::Strict => level == Level::Strict,
            Need::May => false,
        };
        match map.get(field.name) {
            Some(value) => field.shape.hold(value, level, &at.at(field.name), found),
            None if needed => {
                let what = format!("it is missing; add {}", field.shape.words());
                found.push(at.at(field.name).offence(what));
            }
            None => {}
        }
    }
    for name in map.keys() {
        if fields.iter().any(|field| field.name == name) {
            continue;
        }
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let what = match closest(name, &known) {
            Some(close) => format!("NBMP has no such field here; write {close}, or remove it"),
            None => format!("NBMP has no such field here; there are {}", list(&known)),
        };
        found.push(at.at(name).offence(what));
    }
}
