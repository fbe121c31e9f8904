//! JSON within bounds: length, depth, number of values, and no name twice.

use super::path::{Member, Offence};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};

/// A longer text is refused.
pub const BYTES_MAX: usize = 4 << 20;
/// Objects and arrays within each other.
pub const DEPTH_MAX: usize = 32;
/// Values in all.
pub const VALUES_MAX: usize = 100_000;

/// A document as JSON.
///
/// # Errors
/// Where it is no JSON, where a name stands twice, or which bound it is beyond.
pub fn read(text: &[u8]) -> Result<Value, Offence> {
    if text.len() > BYTES_MAX {
        let what = format!("{} bytes; at most {BYTES_MAX}", text.len());
        return Err(Offence {
            path: "$".into(),
            what,
        });
    }
    let walk = Walk::default();
    let mut from = serde_json::Deserializer::from_slice(text);
    let seed = Seed {
        walk: &walk,
        depth: 0,
    };
    let read = seed.deserialize(&mut from);
    let read = read.and_then(|value| from.end().map(|()| value));
    read.map_err(|error| Offence {
        path: walk.place.take(),
        what: error.to_string(),
    })
}

/// Where the reading is, and how much it has read.
struct Walk {
    place: RefCell<String>,
    values: Cell<usize>,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            place: RefCell::new("$".into()),
            values: Cell::new(0),
        }
    }
}

impl Walk {
    /// Goes one down; gives back how to come up again.
    fn enter(&self, segment: impl fmt::Display) -> usize {
        let mut place = self.place.borrow_mut();
        let before = place.len();
        let _ = write!(place, "{segment}");
        before
    }

    fn leave(&self, before: usize) {
        self.place.borrow_mut().truncate(before);
    }
}

struct Seed<'a> {
    walk: &'a Walk,
    depth: usize,
}

impl Seed<'_> {
    fn inner(&self) -> Seed<'_> {
        Seed {
            walk: self.walk,
            depth: self.depth + 1,
        }
    }

    fn deep<E: Error>(&self) -> Result<(), E> {
        if self.depth < DEPTH_MAX {
            return Ok(());
        }
        Err(E::custom(format_args!(
            "deeper than {DEPTH_MAX} objects and arrays"
        )))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
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

impl<'de> Visitor<'de> for Seed<'_> {
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
            .ok_or_else(|| E::custom("a number beyond all numbers"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        self.deep()?;
        let mut list = Vec::new();
        loop {
            let before = self.walk.enter(format_args!("[{}]", list.len()));
            let next = from.next_element_seed(self.inner())?;
            self.walk.leave(before);
            match next {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        self.deep()?;
        let mut map = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let before = self.walk.enter(Member(&name));
            if map.contains_key(&name) {
                return Err(A::Error::custom("this name stands twice: leave one"));
            }
            let value = from.next_value_seed(self.inner())?;
            self.walk.leave(before);
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_serde_json_reads() {
        let text = r#"{"a":[1,-2,3.5,true,null,"x\u00e9"],"b":{"c":{}},"d":18446744073709551615}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn wrong_texts_are_refused_at_their_place() {
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        let many = format!("[{}0]", "0,".repeat(VALUES_MAX));
        let long = " ".repeat(BYTES_MAX + 1);
        for (text, path, what) in [
            ("", "$", "EOF"),
            ("{\"a\":[0,{\"b\":1,\"b\":2}]}", "$.a[1].b", "twice"),
            ("{\"a-b\":tru}", "$['a-b']", "line 1 column 11"),
            ("{} {}", "$", "trailing"),
            ("1e999", "$", "range"),
            ("\"\u{1}\"", "$", "control"),
            (&deep, "[0]", "deeper than 32"),
            (&many, "$[99999]", "more than 100000"),
            (&long, "$", "at most 4194304"),
        ] {
            let offence = read(text.as_bytes()).unwrap_err();
            assert!(offence.path.ends_with(path), "{offence}");
            assert!(offence.what.contains(what), "{offence}");
        }
        let at_most = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(read(at_most.as_bytes()).is_ok());
        assert!(read(b"\"\xff\"").is_err());
    }
}
