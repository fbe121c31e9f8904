//! Parses JSON with limits on length, depth and number of values, and rejects duplicate names.

use super::json_path::{NbmpFault, PathMember};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};

/// Maximum length of a document in bytes.
pub const BYTES_MAX: usize = 4 << 20;
/// Maximum nesting depth of objects and arrays.
pub const DEPTH_MAX: usize = 32;
/// Maximum number of values in a document.
pub const VALUES_MAX: usize = 100_000;

/// Parses a document.
///
/// # Errors
/// The text is not JSON, has a duplicate name, or exceeds a limit.
pub fn parse_bounded_json(text: &[u8]) -> Result<Value, NbmpFault> {
    if text.len() > BYTES_MAX {
        let what = format!("{} bytes; at most {BYTES_MAX}", text.len());
        return Err(NbmpFault {
            path: "$".into(),
            what,
        });
    }
    let walk = JsonParserPosition::default();
    let mut from = serde_json::Deserializer::from_slice(text);
    let seed = BoundedJsonSeed {
        walk: &walk,
        depth: 0,
    };
    let read = seed.deserialize(&mut from);
    let read = read.and_then(|value| from.end().map(|()| value));
    read.map_err(|error| NbmpFault {
        path: walk.place.take(),
        what: error.to_string(),
    })
}

/// Position of the parser, and the number of values that the parser has read.
struct JsonParserPosition {
    place: RefCell<String>,
    values: Cell<usize>,
}

impl Default for JsonParserPosition {
    fn default() -> JsonParserPosition {
        JsonParserPosition {
            place: RefCell::new("$".into()),
            values: Cell::new(0),
        }
    }
}

impl JsonParserPosition {
    /// Appends a segment to the path. Returns the previous length of the path, which
    /// `leave_segment` restores.
    fn enter_segment(&self, segment: impl fmt::Display) -> usize {
        let mut place = self.place.borrow_mut();
        let before = place.len();
        let _ = write!(place, "{segment}");
        before
    }

    fn leave_segment(&self, before: usize) {
        self.place.borrow_mut().truncate(before);
    }
}

struct BoundedJsonSeed<'a> {
    walk: &'a JsonParserPosition,
    depth: usize,
}

impl BoundedJsonSeed<'_> {
    fn nested_seed(&self) -> BoundedJsonSeed<'_> {
        BoundedJsonSeed {
            walk: self.walk,
            depth: self.depth + 1,
        }
    }

    fn check_depth<E: Error>(&self) -> Result<(), E> {
        if self.depth < DEPTH_MAX {
            return Ok(());
        }
        Err(E::custom(format_args!(
            "nested deeper than {DEPTH_MAX} objects and arrays"
        )))
    }
}

impl<'de> DeserializeSeed<'de> for BoundedJsonSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        let values = &self.walk.values;
        values.set(values.get() + 1);
        if values.get() > VALUES_MAX {
            return Err(D::Error::custom(format_args!(
                "more than {VALUES_MAX} values"
            )));
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedJsonSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        let number = Number::from_f64(number);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut list = Vec::new();
        loop {
            let before = self.walk.enter_segment(format_args!("[{}]", list.len()));
            let next = from.next_element_seed(self.nested_seed())?;
            self.walk.leave_segment(before);
            match next {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut map = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let before = self.walk.enter_segment(PathMember(&name));
            if map.contains_key(&name) {
                return Err(A::Error::custom("duplicate name; remove one"));
            }
            let value = from.next_value_seed(self.nested_seed())?;
            self.walk.leave_segment(before);
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_equal_those_of_serde_json() {
        let text = r#"{"a":[1,-2,3.5,true,null,"x\u00e9"],"b":{"c":{}},"d":18446744073709551615}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse_bounded_json(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn invalid_texts_are_refused_with_their_path() {
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        let many = format!("[{}0]", "0,".repeat(VALUES_MAX));
        let long = " ".repeat(BYTES_MAX + 1);
        for (text, path, what) in [
            ("", "$", "EOF"),
            (
                "{\"a\":[0,{\"b\":1,\"b\":2}]}",
                "$.a[1].b",
                "duplicate name",
            ),
            ("{\"a-b\":tru}", "$['a-b']", "line 1 column 11"),
            ("{} {}", "$", "trailing"),
            ("1e999", "$", "range"),
            ("\"\u{1}\"", "$", "control"),
            (&deep, "[0]", "deeper than 32"),
            (&many, "$[99999]", "more than 100000"),
            (&long, "$", "at most 4194304"),
        ] {
            let offence = parse_bounded_json(text.as_bytes()).unwrap_err();
            assert!(offence.path.ends_with(path), "{offence}");
            assert!(offence.what.contains(what), "{offence}");
        }
        let at_most = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(parse_bounded_json(at_most.as_bytes()).is_ok());
        assert!(parse_bounded_json(b"\"\xff\"").is_err());
    }
}
