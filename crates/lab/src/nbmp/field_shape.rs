//! Defines the types of fields as data, and checks documents against these types recursively.

use super::ValidationStrictness;
use super::json_path::{JsonPath, NbmpFault};
use super::text_syntax_checks::{describe_value, join_names};
use crate::closest_name::find_closest_name;
use serde_json::{Map, Value};

/// A field of an object.
pub(super) struct DescriptorField {
    pub(super) name: &'static str,
    pub(super) need: FieldNeed,
    pub(super) shape: FieldShape,
}

/// Requirement level of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldNeed {
    /// Always required.
    Must,
    /// Required only at the strict level, because many existing documents lack the field.
    Strict,
    /// Optional.
    May,
}

/// A check that compares several members of a value.
pub(super) type CrossFieldCheck = fn(&Value, &JsonPath, &mut Vec<NbmpFault>);

/// Type of a field.
pub(super) enum FieldShape {
    Text,
    /// A text that contains more than white space.
    NonEmptyText,
    OneOf(&'static [&'static str]),
    /// A text that must pass the test at both levels. The string describes the expected form.
    Form(fn(&str) -> bool, &'static str),
    /// A text that must pass the test at the strict level only.
    StrictForm(fn(&str) -> bool, &'static str),
    /// An integer of at least this value.
    IntegerFrom(i64),
    Integer,
    Number,
    Boolean,
    /// An array with the minimum length that the standard requires. The lenient level accepts
    /// shorter arrays, because many existing documents contain them.
    List(&'static FieldShape, usize),
    /// An object with these fields. The outer reference points to a static, so that descriptors can
    /// contain each other recursively.
    Object(&'static &'static [DescriptorField]),
    /// Any object.
    AnyObject,
    Any,
    /// A type with an additional check.
    Checked(&'static FieldShape, CrossFieldCheck),
}

impl FieldShape {
    /// Describes the expected value for error messages.
    fn describe_expected(&self) -> String {
        match self {
            FieldShape::Text => "a string".into(),
            FieldShape::NonEmptyText => "a non-empty string".into(),
            FieldShape::OneOf(all) => format!("one of {}", join_names(all)),
            FieldShape::Form(_, words) | FieldShape::StrictForm(_, words) => (*words).into(),
            FieldShape::Checked(shape, _) => shape.describe_expected(),
            FieldShape::IntegerFrom(min) => format!("an integer of at least {min}"),
            FieldShape::Integer => "an integer".into(),
            FieldShape::Number => "a number".into(),
            FieldShape::Boolean => "true or false".into(),
            FieldShape::List(shape, _) => {
                format!("an array; each element is {}", shape.describe_expected())
            }
            FieldShape::Object(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                format!("an object with the fields {}", join_names(&names))
            }
            FieldShape::AnyObject => "an object".into(),
            FieldShape::Any => "a value".into(),
        }
    }

    /// Adds all faults of a value to `found`.
    pub(super) fn check_value(
        &self,
        value: &Value,
        level: ValidationStrictness,
        at: &JsonPath,
        found: &mut Vec<NbmpFault>,
    ) {
        let fits = match (self, value) {
            (FieldShape::Object(fields), Value::Object(map)) => {
                return check_members(fields, map, level, at, found);
            }
            (FieldShape::List(shape, min), Value::Array(values)) => {
                if level == ValidationStrictness::Strict && values.len() < *min {
                    found.push(at.fault_here(format!("empty; add {}", shape.describe_expected())));
                }
                let each = values.iter().enumerate();
                return each
                    .for_each(|(n, value)| shape.check_value(value, level, &at.element(n), found));
            }
            (FieldShape::Checked(shape, among), value) => {
                shape.check_value(value, level, at, found);
                return among(value, at, found);
            }
            (FieldShape::Text, Value::String(_))
            | (FieldShape::Number, Value::Number(_))
            | (FieldShape::Boolean, Value::Bool(_))
            | (FieldShape::AnyObject, Value::Object(_))
            | (FieldShape::Any, _) => true,
            (FieldShape::NonEmptyText, Value::String(text)) => !text.trim().is_empty(),
            (FieldShape::OneOf(all), Value::String(text)) => all.contains(&text.as_str()),
            (FieldShape::Form(test, _), Value::String(text)) => test(text),
            (FieldShape::StrictForm(test, _), Value::String(text)) => {
                level == ValidationStrictness::Lenient || test(text)
            }
            (FieldShape::IntegerFrom(min), value) => match (value.as_i64(), value.as_u64()) {
                (Some(number), _) => number >= *min,
                (None, beyond) => beyond.is_some(),
            },
            (FieldShape::Integer, value) => value.is_i64() || value.is_u64(),
            _ => false,
        };
        if !fits {
            found.push(at.fault_here(format!(
                "{}; write {}",
                describe_value(value),
                self.describe_expected()
            )));
        }
    }
}

fn check_members(
    fields: &[DescriptorField],
    map: &Map<String, Value>,
    level: ValidationStrictness,
    at: &JsonPath,
    found: &mut Vec<NbmpFault>,
) {
    for field in fields {
        let needed = match field.need {
            FieldNeed::Must => true,
            FieldNeed::Strict => level == ValidationStrictness::Strict,
            FieldNeed::May => false,
        };
        match map.get(field.name) {
            Some(value) => field
                .shape
                .check_value(value, level, &at.at(field.name), found),
            None if needed => {
                let what = format!("missing; add {}", field.shape.describe_expected());
                found.push(at.at(field.name).fault_here(what));
            }
            None => {}
        }
    }
    for name in map.keys() {
        if fields.iter().any(|field| field.name == name) {
            continue;
        }
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let what = match find_closest_name(name, &known) {
            Some(close) => format!("unknown field; write {close}, or remove it"),
            None => format!("unknown field; NBMP allows {}", join_names(&known)),
        };
        found.push(at.at(name).fault_here(what));
    }
}
